// Work that goes from hand to hand: writer, editor, checker. The last one's answer is the answer;
// what it publishes is read by whoever reads that topic.
// usage: 07_pipeline MODEL, e.g. openai/gpt-4.1-mini, or mock/mock.json beside this file
#include <troupe/runtime.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace {

troupe::session_member_spec station(const std::string& name, const std::string& does,
                                    std::vector<std::string> topics = {}) {
  return {{.name = name, .instructions = does, .kind = "tool", .description = does, .max_steps = 4},
          std::move(topics)};
}

void show(const troupe::live_event& e) {
  if (e.kind == "letter")
    std::printf("%s -> %s\n", e.payload.value("from", "").c_str(),
                e.payload.value("to", "").c_str());
}

}  // namespace

int main(int argc, char** argv) {
  auto rt = troupe::runtime::start({.model = argc > 1 ? argv[1] : "mock/mock.json"});
  if (!rt)
    return std::fprintf(stderr, "%s\n", rt.error().detail.c_str()), 1;

  auto pipeline = rt->define(troupe::session_spec{
    .members = {station("writer", "Writes a draft and hands it to the editor."),
                station("editor", "Shortens a draft and hands it to the checker."),
                station("checker",
                        "Checks a text, publishes that it is done, and answers with it."),
                station("archive", "Keeps a record of notices.", {"notices"})},
    .max_letters = 20});
  if (!pipeline)
    return std::fprintf(stderr, "%s\n", pipeline.error().detail.c_str()), 1;

  auto run =
    rt->submit(*pipeline, "A line for the notice board about the lift that is out of order.",
               {.on_event = show});
  auto outcome = run.wait();
  rt->stop();  // now all events have been shown
  std::printf("%s: %s\n", outcome.end.c_str(), outcome.text.c_str());
  return outcome.ok() ? 0 : 1;
}
