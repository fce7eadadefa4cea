#include "runtime/model/reply_json.hpp"

#include "runtime/core/member_reader.hpp"
#include "runtime/core/text.hpp"

namespace troupe {

// Every text is written as valid UTF-8, so that reading it back gives what was seen.

json to_json(const token_usage& x) {
  json out{
    {"input", x.input}, {"output", x.output}, {"cached", x.cached}, {"reasoning", x.reasoning}};
  if (x.cache_written > 0)
    out["cache_written"] = x.cache_written;
  if (x.untold > 0)
    out["untold"] = x.untold;
  return out;
}

result<token_usage> usage_from_json(const json& j) {
  token_usage x;
  member_reader r{j, "usage"};
  r.get("input", x.input).get("output", x.output).get("cached", x.cached);
  r.get("reasoning", x.reasoning).get("cache_written", x.cache_written).get("untold", x.untold);
  return r.done(x);
}

json to_json(const tool_call_message& x) {
  json out{{"id", to_utf8(x.id)}, {"name", to_utf8(x.name)}, {"arguments", to_utf8(x.arguments)}};
  if (!x.kept.empty())
    out["kept"] = to_utf8(x.kept);
  return out;
}

json to_json(const std::vector<tool_call_message>& calls) {
  auto out = json::array();
  for (auto& call : calls)
    out.push_back(to_json(call));
  return out;
}

json to_json(const model_reply& x) {
  json out{{"text", to_utf8(x.text)},   {"finish_reason", to_utf8(x.finish_reason)},
           {"model", to_utf8(x.model)}, {"usage", to_json(x.usage)},
           {"attempts", x.attempts},    {"latency_ms", x.latency.count()}};
  if (!x.tool_calls.empty())
    out["tool_calls"] = to_json(x.tool_calls);
  if (!x.reasoning.empty())
    out["reasoning"] = to_utf8(x.reasoning);
  if (!x.kept.empty())
    out["kept"] = to_utf8(x.kept);
  return out;
}

json to_json(const model_failure& x) {
  json out{{"kind", to_string(x.kind)}, {"detail", to_utf8(x.detail)}, {"attempts", x.attempts}};
  if (x.retry_after)
    out["retry_after_ms"] = x.retry_after->count();
  return out;
}

result<tool_call_message> tool_call_from_json(const json& j) {
  tool_call_message x;
  member_reader r{j, "tool_call"};
  r.get("id", x.id).get("name", x.name).get("arguments", x.arguments).get("kept", x.kept);
  return r.done(std::move(x));
}

result<model_reply> reply_from_json(const json& j) {
  model_reply x;
  member_reader r{j, "reply"};
  r.need("text").get("text", x.text).get("finish_reason", x.finish_reason).get("model", x.model);
  r.list("tool_calls", x.tool_calls, tool_call_from_json).nested("usage", x.usage, usage_from_json);
  r.get("attempts", x.attempts).get("latency_ms", x.latency);
  r.get("reasoning", x.reasoning).get("kept", x.kept);
  return r.done(std::move(x));
}

result<model_failure> failure_from_json(const json& j) {
  model_failure x;
  member_reader r{j, "failure"};
  r.need("kind").get_word("kind", x.kind, failure_class::unknown).get("detail", x.detail);
  r.get("attempts", x.attempts);
  if (r.find("retry_after_ms") != nullptr)
    r.get("retry_after_ms", x.retry_after.emplace());
  return r.done(std::move(x));
}

}  // namespace troupe
