// Events as JSON and back. A file may be old, new or damaged: absent members take their defaults,
// unknown ones are ignored, members of another type or range are errors.
#include "runtime/agent/events.hpp"
#include "runtime/core/overloaded.hpp"
#include "runtime/core/text.hpp"

#include <limits>
#include <type_traits>
#include <utility>

namespace troupe {
namespace {

// Every text is written as valid UTF-8, so that reading it back gives what the loop saw.

json write(const tool_call_message& x) {
  json out{{"id", to_utf8(x.id)}, {"name", to_utf8(x.name)}, {"arguments", to_utf8(x.arguments)}};
  if (!x.kept.empty())
    out["kept"] = to_utf8(x.kept);
  return out;
}

json write(const std::vector<tool_call_message>& calls) {
  auto out = json::array();
  for (auto& call : calls)
    out.push_back(write(call));
  return out;
}

json write(const chat_message& x) {
  json out{{"role", to_string(x.from)}, {"content", to_utf8(x.content)}};
  if (!x.tool_calls.empty())
    out["tool_calls"] = write(x.tool_calls);
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

json write(const token_usage& x) {
  json out{
    {"input", x.input}, {"output", x.output}, {"cached", x.cached}, {"reasoning", x.reasoning}};
  if (x.cache_written > 0)
    out["cache_written"] = x.cache_written;
  return out;
}

json write(const model_reply& x) {
  json out{{"text", to_utf8(x.text)},   {"finish_reason", to_utf8(x.finish_reason)},
           {"model", to_utf8(x.model)}, {"usage", write(x.usage)},
           {"attempts", x.attempts},    {"latency_ms", x.latency.count()}};
  if (!x.tool_calls.empty())
    out["tool_calls"] = write(x.tool_calls);
  if (!x.reasoning.empty())
    out["reasoning"] = to_utf8(x.reasoning);
  if (!x.kept.empty())
    out["kept"] = to_utf8(x.kept);
  return out;
}

json write(const model_failure& x) {
  json out{{"kind", to_string(x.kind)}, {"detail", to_utf8(x.detail)}, {"attempts", x.attempts}};
  if (x.retry_after)
    out["retry_after_ms"] = x.retry_after->count();
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

/// Reads members one by one and remembers the first that does not fit.
class reader {
public:
  reader(const json& object, std::string where) : object_{object}, where_{std::move(where)} {
    if (!object_.is_object())
      complain("", "an object");
  }

  [[nodiscard]] const json* find(std::string_view key) const {
    if (!object_.is_object())
      return nullptr;
    auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  reader& need(std::string_view key) {
    if (find(key) == nullptr)
      complain(key, "present");
    return *this;
  }

  reader& get(std::string_view key, std::string& out) {
    if (auto* x = find(key); x != nullptr && !x->is_string())
      complain(key, "a string");
    else if (x != nullptr)
      out = x->get_ref<const std::string&>();
    return *this;
  }

  reader& get(std::string_view key, bool& out) {
    if (auto* x = find(key); x != nullptr && !x->is_boolean())
      complain(key, "true or false");
    else if (x != nullptr)
      out = x->get<bool>();
    return *this;
  }

  template <class Unsigned>
    requires(std::is_unsigned_v<Unsigned> && !std::is_same_v<Unsigned, bool>)
  reader& get(std::string_view key, Unsigned& out) {
    auto* x = find(key);
    if (x == nullptr)
      return *this;
    auto negative =
      x->is_number_integer() && !x->is_number_unsigned() && x->get<std::int64_t>() < 0;
    if (!x->is_number_integer() || negative
        || x->get<std::uint64_t>() > std::numeric_limits<Unsigned>::max())
      complain(key, "a whole number in range");
    else
      out = static_cast<Unsigned>(x->get<std::uint64_t>());
    return *this;
  }

  template <class Rep, class Period>
  reader& get(std::string_view key, std::chrono::duration<Rep, Period>& out) {
    std::uint64_t count = 0;
    if (find(key) == nullptr || !get(key, count).fits<Rep>(key, count))
      return *this;
    out = std::chrono::duration<Rep, Period>{static_cast<Rep>(count)};
    return *this;
  }

  /// One word of an enum whose values count from 0 to `last`.
  template <class Enum>
  reader& get_word(std::string_view key, Enum& out, Enum last) {
    std::string word;
    get(key, word);
    if (find(key) == nullptr || bad_)
      return *this;
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      if (to_string(static_cast<Enum>(i)) == word) {
        out = static_cast<Enum>(i);
        return *this;
      }
    }
    complain(key, "a known word");
    return *this;
  }

  /// A nested value, read by `read(const json&)`.
  template <class T, class Read>
  reader& nested(std::string_view key, T& out, Read read) {
    if (auto* x = find(key); x != nullptr && !bad_) {
      result<T> inner = read(*x);
      if (inner)
        out = *std::move(inner);
      else
        bad_ = inner.error();
    }
    return *this;
  }

  template <class T, class Read>
  reader& list(std::string_view key, std::vector<T>& out, Read read) {
    auto* x = find(key);
    if (x != nullptr && !x->is_array())
      complain(key, "an array");
    for (std::size_t i = 0; x != nullptr && x->is_array() && i < x->size() && !bad_; ++i) {
      result<T> item = read((*x)[i]);
      if (item)
        out.push_back(*std::move(item));
      else
        bad_ = item.error();
    }
    return *this;
  }

  template <class T>
  [[nodiscard]] result<T> done(T x) {
    if (bad_)
      return fail(*bad_);
    return x;
  }

private:
  template <class Rep>
  bool fits(std::string_view key, std::uint64_t count) {
    if (count > static_cast<std::uint64_t>(std::numeric_limits<Rep>::max()))
      complain(key, "a whole number in range");
    return !bad_;
  }

  void complain(std::string_view key, std::string_view expected) {
    if (!bad_)
      bad_ = error{errc::corrupt, where_ + (key.empty() ? "" : "." + std::string{key}) + " is not "
                                    + std::string{expected}};
  }

  const json& object_;
  std::string where_;
  std::optional<error> bad_;
};

result<tool_call_message> read_tool_call(const json& j) {
  tool_call_message x;
  reader r{j, "tool_call"};
  r.get("id", x.id).get("name", x.name).get("arguments", x.arguments).get("kept", x.kept);
  return r.done(std::move(x));
}

result<std::string> read_text(const json& j) {
  if (!j.is_string())
    return fail(errc::corrupt, "message.images has something that is not a string");
  return j.get<std::string>();
}

result<chat_message> read_message(const json& j) {
  chat_message x;
  reader r{j, "message"};
  r.need("role").get_word("role", x.from, role::tool).get("content", x.content);
  r.list("tool_calls", x.tool_calls, read_tool_call).get("tool_call_id", x.tool_call_id);
  r.list("images", x.images, read_text).get("kept", x.kept).get("failed", x.failed);
  return r.done(std::move(x));
}

result<token_usage> read_tokens(const json& j) {
  token_usage x;
  reader r{j, "usage"};
  r.get("input", x.input).get("output", x.output).get("cached", x.cached);
  r.get("reasoning", x.reasoning).get("cache_written", x.cache_written);
  return r.done(x);
}

result<model_reply> read_reply(const json& j) {
  model_reply x;
  reader r{j, "reply"};
  r.need("text").get("text", x.text).get("finish_reason", x.finish_reason).get("model", x.model);
  r.list("tool_calls", x.tool_calls, read_tool_call).nested("usage", x.usage, read_tokens);
  r.get("attempts", x.attempts).get("latency_ms", x.latency);
  r.get("reasoning", x.reasoning).get("kept", x.kept);
  return r.done(std::move(x));
}

result<model_failure> read_failure(const json& j) {
  model_failure x;
  reader r{j, "failure"};
  r.need("kind").get_word("kind", x.kind, failure_class::unknown).get("detail", x.detail);
  r.get("attempts", x.attempts);
  if (r.find("retry_after_ms") != nullptr)
    r.get("retry_after_ms", x.retry_after.emplace());
  return r.done(std::move(x));
}

result<snippet_error> read_error(const json& j) {
  snippet_error x;
  reader r{j, "error"};
  r.get("type", x.type).get("message", x.message).get("line", x.line);
  r.get("traceback", x.traceback);
  return r.done(std::move(x));
}

result<sandbox_usage> read_usage(const json& j) {
  sandbox_usage x;
  reader r{j, "usage"};
  r.get("wall_us", x.wall).get("cpu_us", x.cpu).get("max_rss_bytes", x.max_rss_bytes);
  r.get("tool_calls", x.tool_calls);
  return r.done(x);
}

result<value> read_value(const json& j) {
  value x;
  reader r{j, "result"};
  r.get("text", x.text);
  if (auto* tagged = r.find("tagged"))
    x.tagged = *tagged;
  return r.done(std::move(x));
}

result<snippet_outcome> read_outcome(const json& j) {
  snippet_outcome x;
  reader r{j, "outcome"};
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
  reader r{j, "run_started"};
  r.need("task").get("task", x.task).list("history", x.history, read_message);
  return r.done(std::move(x));
}

result<agent_event> read_text_event(std::string_view kind, const json& j) {
  std::string text;
  auto failed = kind == "sandbox_failed";
  reader r{j, std::string{kind}};
  r.get(failed ? "detail" : "reason", text);
  return r.done(failed ? agent_event{sandbox_failed{text}} : agent_event{cancel_requested{text}});
}

}  // namespace

json to_json(const agent_event& e) {
  return std::visit(overloaded{[](const run_started& x) {
                                 auto history = json::array();
                                 for (auto& message : x.history)
                                   history.push_back(write(message));
                                 return json{{"task", to_utf8(x.task)}, {"history", history}};
                               },
                               [](const model_replied& x) { return write(x.reply); },
                               [](const model_failed& x) { return write(x.failure); },
                               [](const snippet_done& x) { return write(x.outcome); },
                               [](const sandbox_failed& x) {
                                 return json{{"detail", to_utf8(x.detail)}};
                               },
                               [](const cancel_requested& x) {
                                 return json{{"reason", to_utf8(x.reason)}};
                               },
                               [](const deadline_passed&) { return json::object(); }},
                    e);
}

result<agent_event> event_from_json(std::string_view kind, const json& payload) {
  if (kind == "run_started")
    return wrapped(read_start(payload));
  if (kind == "model_replied")
    return wrapped(
      read_reply(payload).map([](model_reply&& x) { return model_replied{std::move(x)}; }));
  if (kind == "model_failed")
    return wrapped(
      read_failure(payload).map([](model_failure&& x) { return model_failed{std::move(x)}; }));
  if (kind == "snippet_done")
    return wrapped(
      read_outcome(payload).map([](snippet_outcome&& x) { return snippet_done{std::move(x)}; }));
  if (kind == "sandbox_failed" || kind == "cancel_requested")
    return read_text_event(kind, payload);
  if (kind == "deadline_passed")
    return agent_event{deadline_passed{}};
  return fail(errc::corrupt, "'" + std::string{kind} + "' is no event of a run");
}

}  // namespace troupe
