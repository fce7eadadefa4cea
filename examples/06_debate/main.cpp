// A judge who hears two sides, asks back, and decides. Each keeps its own memory of what was said.
// usage: 06_debate MODEL, e.g. openai/gpt-4.1-mini, or mock/mock.json beside this file
#include <troupe/runtime.hpp>

#include <cstdio>
#include <string>

namespace {

troupe::agent_spec debater(const std::string& name, const std::string& side) {
  return {.name = name,
          .instructions = "You argue " + side + ", in one sentence.",
          .kind = "tool",
          .description = "Argues " + side + ".",
          .max_steps = 3};
}

void show(const troupe::live_event& e) {
  if (e.kind == "letter")
    std::printf("%s to %s: %s\n", e.payload.value("from", "").c_str(),
                e.payload.value("to", "").c_str(), e.payload.value("text", "").c_str());
}

}  // namespace

int main(int argc, char** argv) {
  auto rt = troupe::runtime::start({.model = argc > 1 ? argv[1] : "mock/mock.json"});
  if (!rt)
    return std::fprintf(stderr, "%s\n", rt.error().detail.c_str()), 1;

  troupe::agent_spec judge{.name = "judge",
                           .instructions = "Hear both sides, ask back where one is weak, decide.",
                           .kind = "tool",
                           .max_steps = 6};
  auto debate = rt->define(troupe::session_spec{
    .members = {{judge}, {debater("advocate", "in favour")}, {debater("sceptic", "against it")}},
    .max_letters = 10});
  if (!debate)
    return std::fprintf(stderr, "%s\n", debate.error().detail.c_str()), 1;

  auto run =
    rt->submit(*debate, "Should a small team write its own job queue?", {.on_event = show});
  auto outcome = run.wait();
  rt->stop();  // now all events have been shown
  std::printf("%s: %s\n", outcome.end.c_str(), outcome.text.c_str());
  return outcome.ok() ? 0 : 1;
}
