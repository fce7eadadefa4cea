#include "runtime/agent/structured_reply.hpp"

#include "runtime/agent/loose_json.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

std::string example(std::string_view code) {
  return "{\"thought\": \"what to do next and why\", \"code\": " + dump_json(json(code)) + "}\n";
}

/// True for code in the form that other agents write it in, whatever braces are in it.
bool shows_code(std::string_view text, const code_tags& tags) {
  auto brace = std::min(text.find('{'), text.size());
  return text.find(tags.open) < brace || text.find("```py") < brace;
}

}  // namespace

output_schema thought_and_code() {
  return {
    "thought_and_code",
    ordered_json{{"type", "object"},
                 {"properties",
                  {{"thought", {{"type", "string"}, {"description", "What comes next, and why."}}},
                   {"code", {{"type", "string"}, {"description", "Python that does it."}}}}},
                 {"required", {"thought", "code"}},
                 {"additionalProperties", false}},
    true};
}

result<std::string> structured_code(std::string_view reply, const code_tags& tags) {
  auto visible = without_thoughts(reply);
  if (shows_code(visible, tags))
    return fail(errc::corrupt, "it is no JSON");
  auto found = json_in(visible);
  if (!found)
    return fail(errc::corrupt, found.error().detail);
  auto member = found->is_object() ? found->find("code") : found->end();
  if (member == found->end() || !member->is_string())
    return fail(errc::corrupt, "the JSON in it has no text \"code\"");
  std::string code{trim(member->get_ref<const std::string&>())};
  if (code.empty())
    return fail(errc::corrupt, "its \"code\" is empty");
  if (code.starts_with(tags.open) || code.starts_with("```"))
    if (auto inner = parse_reply(code, tags);
        inner.source == code_source::tags || inner.source == code_source::fence)
      return std::move(inner.code);
  return code;
}

std::string structured_error(std::string_view reply, std::string_view why) {
  std::string out = "Your reply held no code that could be run: " + std::string{why}
                    + ".\nReply with one JSON object and nothing around it, like this:\n"
                    + example("print(\"your code here\")");
  if (mentions_answer(reply))
    out += "If you meant to give your final answer, give it by code:\n"
           + example("final_answer(\"your answer here\")");
  return out;
}

}  // namespace troupe
