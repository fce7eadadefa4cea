#include "actors/result_of.hpp"

#include "runtime/core/value.hpp"

namespace troupe {

run_result result_of(const run_finished& how, const std::string& sample, std::uint32_t epoch,
                     std::int64_t started_at) {
  run_result out;
  out.run = how.run;
  out.sample_id = sample;
  out.epoch = epoch;
  out.end = to_string(how.end.end);
  if (how.end.answer) {
    // A text is its own answer; of other values there is what Python's str() made, which is cut.
    const auto& tagged = how.end.answer->tagged;
    out.answer = tagged.is_string() ? tagged.get<std::string>() : how.end.answer->text;
    out.answer_value = to_plain(how.end.answer->tagged);
  }
  out.error = how.end.error;
  out.turns = how.end.turns;
  out.snippets = how.end.snippets;
  out.snippet_failures = how.end.snippet_failures;
  out.sandboxes = how.sandboxes;
  out.tool_calls = how.tool_calls;
  out.model_attempts = how.end.model_attempts;
  out.tokens = how.end.tokens;
  out.started_at = started_at;
  out.wall = how.wall;
  out.model_wait = how.model_wait;
  out.sandbox_wall = how.end.sandbox.wall;
  out.sandbox_cpu = how.end.sandbox.cpu;
  out.model = how.model;
  return out;
}

}  // namespace troupe
