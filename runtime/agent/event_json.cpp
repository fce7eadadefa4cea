// Events as JSON and back.
#include "runtime/agent/events.hpp"
#include "runtime/core/member_reader.hpp"
#include "runtime/core/overloaded.hpp"
#include "runtime/core/text.hpp"
#include "runtime/model/reply_json.hpp"

#include <utility>

namespace troupe {
namespace {

// Every text is written as valid UTF-8, so that reading it back gives what the loop saw.

json write(const chat_message& x) {
  json out{{"role", to_string(x.from)}, {"content", to_utf8(x.content)}};
  if (!x.tool_calls.empty())
    out["tool_calls"] = to_json(x.tool_calls);
  if (!x.tool_call_id.empty())
    out["tool_call_id"] = to_utf8(x.tool_call_id);
  if (!x.images.empty())
    out["images"] = x.images;
  if (!x.kept.empty())
    out["kept"] = to_utf8(x.kept);
  if (x.failed)
    out["failed"] = true;
  return out;
}

json write(const snippet_error& x) {
  return {{"type", to_utf8(x.type)},
          {"message", to_utf8(x.message)},
          {"line", x.line},
          {"traceback", to_utf8(x.traceback)}};
}

json write(const sandbox_usage& x) {
  return {{"wall_us", x.wall.count()},
          {"cpu_us", x.cpu.count()},
          {"max_rss_bytes", x.max_rss_bytes},
          {"tool_calls", x.tool_calls}};
}

json write(const snippet_outcome& x) {
  json out{{"end", to_string(x.end)},
           {"is_final", x.is_final},
           {"logs", to_utf8(x.logs)},
           {"usage", write(x.usage)}};
  if (x.logs_dropped > 0)
    out["logs_dropped"] = x.logs_dropped;
  if (!x.reason.empty())
    out["reason"] = to_utf8(x.reason);
  if (x.restored)
    out["restored"] = true;
  if (!x.unprotected.empty())
    out["unprotected"] = to_utf8(x.unprotected);
  if (x.result)
    out["result"] = {{"tagged", x.result->tagged}, {"text", to_utf8(x.result->text)}};
  if (x.error)
    out["error"] = write(*x.error);
  return out;
}

json write(const run_usage& x) {
  return {{"tokens", to_json(x.tokens)},
          {"sandbox", write(x.sandbox)},
          {"model_attempts", x.model_attempts}};
}

json write(const tool_replied& x) {
  json out{{"call", x.call.value}};
  if (x.used)
    out["used"] = write(*x.used);
  if (x.outcome)
    out["value"] = *x.outcome;
  else
    out["error"] = {{"kind", to_string(x.outcome.error().code)},
                    {"message", to_utf8(x.outcome.error().detail)}};
  return out;
}

result<std::string> read_text(const json& j) {
  if (!j.is_string())
    return fail(errc::corrupt, "images has something that is not a string");
  return j.get<std::string>();
}

result<chat_message> read_message(const json& j) {
  chat_message x;
  member_reader r{j, "message"};
  r.need("role").get_word("role", x.from, role::tool).get("content", x.content);
  r.list("tool_calls", x.tool_calls, tool_call_from_json).get("tool_call_id", x.tool_call_id);
  r.list("images", x.images, read_text).get("kept", x.kept).get("failed", x.failed);
  return r.done(std::move(x));
}

result<snippet_error> read_error(const json& j) {
  snippet_error x;
  member_reader r{j, "error"};
  r.get("type", x.type).get("message", x.message).get("line", x.line);
  r.get("traceback", x.traceback);
  return r.done(std::move(x));
}

result<sandbox_usage> read_usage(const json& j) {
  sandbox_usage x;
  member_reader r{j, "usage"};
  r.get("wall_us", x.wall).get("cpu_us", x.cpu).get("max_rss_bytes", x.max_rss_bytes);
  r.get("tool_calls", x.tool_calls);
  return r.done(x);
}

result<value> read_value(const json& j) {
  value x;
  member_reader r{j, "result"};
  r.get("text", x.text);
  if (auto* tagged = r.find("tagged"))
    x.tagged = *tagged;
  return r.done(std::move(x));
}

result<snippet_outcome> read_outcome(const json& j) {
  snippet_outcome x;
  member_reader r{j, "outcome"};
  r.need("end").get_word("end", x.end, snippet_end::killed).get("is_final", x.is_final);
  r.get("logs", x.logs).get("logs_dropped", x.logs_dropped).get("reason", x.reason);
  r.get("restored", x.restored).get("unprotected", x.unprotected);
  r.nested("usage", x.usage, read_usage);
  if (r.find("result") != nullptr)
    r.nested("result", x.result.emplace(), read_value);
  if (r.find("error") != nullptr)
    r.nested("error", x.error.emplace(), read_error);
  return r.done(std::move(x));
}

template <class T>
result<agent_event> wrapped(result<T> inner) {
  if (!inner)
    return fail(inner.error());
  return agent_event{*std::move(inner)};
}

result<run_started> read_start(const json& j) {
  run_started x;
  member_reader r{j, "run_started"};
  r.need("task").get("task", x.task).list("history", x.history, read_message);
  r.list("images", x.images, read_text).get("time_left_ms", x.time_left);
  return r.done(std::move(x));
}

result<error> read_failure(const json& j) {
  std::string kind, message;
  member_reader r{j, "tool_replied.error"};
  r.need("kind").get("kind", kind).get("message", message);
  return r.done(error{errc_from(kind), message});
}

result<run_usage> read_spent(const json& j) {
  run_usage x;
  member_reader r{j, "used"};
  r.nested("tokens", x.tokens, usage_from_json).nested("sandbox", x.sandbox, read_usage);
  r.get("model_attempts", x.model_attempts);
  return r.done(x);
}

result<tool_replied> read_tool_reply(const json& j) {
  tool_replied x;
  member_reader r{j, "tool_replied"};
  r.need("call").get("call", x.call.value);
  if (r.find("used") != nullptr)
    r.nested("used", x.used.emplace(), read_spent);
  if (r.find("error") != nullptr) {
    error failure;
    r.nested("error", failure, read_failure);
    x.outcome = fail(std::move(failure));
  } else if (auto* given = r.find("value"); given != nullptr) {
    x.outcome = *given;
  }
  return r.done(std::move(x));
}

result<agent_event> read_text_event(std::string_view kind, const json& j) {
  std::string text;
  auto failed = kind == "sandbox_failed";
  member_reader r{j, std::string{kind}};
  r.get(failed ? "detail" : "reason", text);
  return r.done(failed ? agent_event{sandbox_failed{text}} : agent_event{cancel_requested{text}});
}

}  // namespace

json to_json(const agent_event& e) {
  return std::visit(overloaded{[](const run_started& x) {
                                 auto history = json::array();
                                 for (auto& message : x.history)
                                   history.push_back(write(message));
                                 json out{{"task", to_utf8(x.task)}, {"history", history}};
                                 if (x.time_left > millis{0})
                                   out["time_left_ms"] = x.time_left.count();
                                 if (!x.images.empty())
                                   out["images"] = x.images;
                                 return out;
                               },
                               [](const model_replied& x) { return to_json(x.reply); },
                               [](const model_failed& x) { return to_json(x.failure); },
                               [](const snippet_done& x) { return write(x.outcome); },
                               [](const sandbox_failed& x) {
                                 return json{{"detail", to_utf8(x.detail)}};
                               },
                               [](const cancel_requested& x) {
                                 return json{{"reason", to_utf8(x.reason)}};
                               },
                               [](const deadline_passed&) { return json::object(); },
                               [](const tool_replied& x) { return write(x); }},
                    e);
}

result<agent_event> event_from_json(std::string_view kind, const json& payload) {
  if (kind == "run_started")
    return wrapped(read_start(payload));
  if (kind == "model_replied")
    return wrapped(
      reply_from_json(payload).map([](model_reply&& x) { return model_replied{std::move(x)}; }));
  if (kind == "model_failed")
    return wrapped(
      failure_from_json(payload).map([](model_failure&& x) { return model_failed{std::move(x)}; }));
  if (kind == "snippet_done")
    return wrapped(
      read_outcome(payload).map([](snippet_outcome&& x) { return snippet_done{std::move(x)}; }));
  if (kind == "tool_replied")
    return wrapped(read_tool_reply(payload));
  if (kind == "sandbox_failed" || kind == "cancel_requested")
    return read_text_event(kind, payload);
  if (kind == "deadline_passed")
    return agent_event{deadline_passed{}};
  return fail(errc::corrupt, "'" + std::string{kind} + "' is no event of a run");
}

}  // namespace troupe
