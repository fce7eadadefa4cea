#include "runtime/model/chat.hpp"

#include "runtime/core/text.hpp"

namespace troupe {

result<json> arguments_of(const tool_call_message& call) {
  if (trim(call.arguments).empty())
    return json::object();
  auto parsed = parse_json(call.arguments);
  if (!parsed)
    return fail(errc::corrupt,
                "the arguments of '" + call.name + "' are not JSON: " + parsed.error().detail);
  if (!parsed->is_object())
    return fail(errc::corrupt, "the arguments of '" + call.name + "' are not a JSON object");
  return parsed;
}

}  // namespace troupe
