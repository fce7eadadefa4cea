// A manager whose Python calls its workers, several at once. Each call is a run of its own.
// usage: 05_manager_and_workers MODEL, e.g. openai/gpt-4.1-mini, or mock/mock.json beside this file
#include <troupe/runtime.hpp>

#include <cstdio>
#include <map>
#include <string>

namespace {

troupe::native_tool population_tool() {
  return troupe::make_tool("population", "How many people live in a city.", {{"city", "its name"}},
                           [](const std::string& city) -> troupe::result<int> {
                             static const std::map<std::string, int> known{
                               {"Turin", 841'000}, {"Porto", 248'000}, {"Graz", 303'000}};
                             auto found = known.find(city);
                             if (found == known.end())
                               return troupe::fail(troupe::errc::not_found,
                                                   "nothing is known of '" + city + "'");
                             return found->second;
                           });
}

/// What each agent does, indented by its place in the team.
void show(const troupe::live_event& e) {
  if (e.kind == "tool_requested")
    std::printf("%*s%s calls %s\n", static_cast<int>(2 * e.depth), "", e.agent.c_str(),
                e.payload.value("tool", "").c_str());
}

}  // namespace

int main(int argc, char** argv) {
  auto rt = troupe::runtime::start({.model = argc > 1 ? argv[1] : "mock/mock.json"});
  if (!rt)
    return std::fprintf(stderr, "%s\n", rt.error().detail.c_str()), 1;

  auto worker = rt->define({.name = "researcher",
                            .tools = {population_tool()},
                            .instructions = "Answer with the number alone.",
                            .kind = "tool",
                            .description = "Finds out facts about one city.",
                            .max_steps = 4});
  if (!worker)
    return std::fprintf(stderr, "%s\n", worker.error().detail.c_str()), 1;
  auto manager = rt->define({.name = "manager",
                             .instructions = "Have the researcher look cities up, all at once.",
                             .team = {*worker},
                             .max_steps = 6});
  if (!manager)
    return std::fprintf(stderr, "%s\n", manager.error().detail.c_str()), 1;

  auto run =
    rt->submit(*manager, "Which is the largest: Turin, Porto or Graz?", {.on_event = show});
  auto outcome = run.wait();
  rt->stop();  // now all events have been shown
  std::printf("%s: %s (%llu tokens, the researchers' among them)\n", outcome.end.c_str(),
              outcome.text.c_str(),
              static_cast<unsigned long long>(outcome.input_tokens + outcome.output_tokens));
  return outcome.ok() ? 0 : 1;
}
