// One agent that calls a C++ function, one task, one answer.
// usage: 01_one_agent MODEL, e.g. openai/gpt-4.1-mini, or mock/mock.json beside this file
#include <troupe/runtime.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  auto rt = troupe::runtime::start({.model = argc > 1 ? argv[1] : "mock/mock.json"});
  if (!rt)
    return std::fprintf(stderr, "%s\n", rt.error().detail.c_str()), 1;

  auto add = troupe::make_tool("add", "Adds two numbers.", {{"a", "one"}, {"b", "the other"}},
                               [](double a, double b) { return a + b; });
  auto agent = rt->define({.name = "adder", .tools = {add}, .kind = "tool"});
  if (!agent)
    return std::fprintf(stderr, "%s\n", agent.error().detail.c_str()), 1;

  auto run = rt->submit(*agent, "What is 2 + 3?");
  auto outcome = run.wait();
  std::printf("%s: %s\n", outcome.end.c_str(), outcome.text.c_str());
  return outcome.ok() ? 0 : 1;
}
