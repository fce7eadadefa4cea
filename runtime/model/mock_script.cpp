#include "runtime/model/mock_script.hpp"

#include "runtime/core/json.hpp"
#include "runtime/core/text.hpp"
#include "runtime/model/script_reader.hpp"

#include <limits>

namespace troupe {
namespace {

std::string in_quotes(std::string_view name) {
  return "'" + std::string{name} + "'";
}

std::optional<error> read_latency(const json& from, const std::string& place, latency_model& out) {
  script_reader r{from, place, {"median_ms", "sigma", "cap_ms"}};
  out.median = r.span("median_ms").value_or(out.median);
  out.sigma = r.number("sigma", 0, 10).value_or(out.sigma);
  out.cap = r.span("cap_ms").value_or(out.cap);
  return r.failed();
}

std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names;
  for (auto i = 0; i <= static_cast<int>(failure_class::unknown); ++i)
    names.push_back(to_string(static_cast<failure_class>(i)));
  return names;
}

/// The members `kind` and `retry_after_ms`.
void read_failure(script_reader& r, mock_failure& out) {
  out.retry_after = r.span("retry_after_ms");
  if (auto name = r.text("kind")) {
    auto kind = failure_class_from(*name);
    if (!kind)
      r.set_error(r.at("kind"),
                  "no failure is called " + in_quotes(*name) + did_you_mean(*name, kind_names()));
    out.kind = kind.value_or(out.kind);
  }
}

std::optional<error> read_failures(const json& from, mock_failures& out) {
  script_reader r{from, "failures", {"rate", "kind", "retry_after_ms"}};
  out.rate = r.number("rate", 0, 1).value_or(out.rate);
  read_failure(r, out.how);
  return r.failed();
}

std::optional<error> read_call(const json& from, const std::string& place,
                               std::vector<tool_call_message>& out) {
  script_reader r{from, place, {"name", "arguments", "id"}};
  r.require("name");
  tool_call_message call;
  call.name = r.text("name").value_or("");
  call.id = r.text("id").value_or("");
  call.arguments = "{}";
  if (auto* arguments = r.find("arguments")) {
    if (!arguments->is_object() && !arguments->is_string())
      r.set_error(r.at("arguments"), "expected an object, or a string that is sent as it is");
    else
      call.arguments =
        arguments->is_string() ? arguments->get<std::string>() : dump_json(*arguments);
  }
  out.push_back(std::move(call));
  return r.failed();
}

std::optional<error> read_usage(const json& from, const std::string& place, mock_usage& out) {
  script_reader r{from, place, {"input", "output", "cached", "reasoning", "cache_written"}};
  out = {r.count("input"), r.count("output"), r.count("cached"), r.count("reasoning"),
         r.count("cache_written")};
  return r.failed();
}

std::optional<error> read_reply(const json& from, const std::string& place, mock_reply& out) {
  if (from.is_string()) {
    out.text = from.get<std::string>();
    return std::nullopt;
  }
  if (!from.is_object())
    return error{errc::invalid_argument,
                 "mock script, " + place + ": expected a string or an object"};
  script_reader r{
    from,
    place,
    {"text", "reasoning", "tool_calls", "finish_reason", "usage", "latency_ms", "failure"}};
  out.text = r.text("text").value_or("");
  out.reasoning = r.text("reasoning").value_or("");
  out.finish_reason = r.text("finish_reason").value_or("");
  out.latency = r.span("latency_ms");
  r.each("tool_calls", "objects", [&](const json& call, const std::string& where) {
    return read_call(call, where, out.tool_calls);
  });
  if (auto* usage = r.find("usage"))
    r.set_error(read_usage(*usage, r.at("usage"), out.usage));
  if (auto* failure = r.find("failure")) {
    script_reader f{*failure, r.at("failure"), {"kind", "retry_after_ms"}};
    read_failure(f, out.failure.emplace());
    r.set_error(f.failed());
  }
  return r.failed();
}

std::optional<error> read_conversation(const json& from, const std::string& place,
                                       mock_script::data& out) {
  script_reader r{from, place, {"task", "replies"}};
  r.require("task");
  r.require("replies");
  auto task = r.text("task");
  std::vector<mock_reply> replies;
  r.each("replies", "strings or objects", [&](const json& reply, const std::string& where) {
    return read_reply(reply, where, replies.emplace_back());
  });
  if (task && !r.failed()
      && !out.conversations.emplace(escaped_for_lookup(*task), std::move(replies)).second)
    r.set_error(r.at("task"), "an earlier conversation has the same task");
  return r.failed();
}

std::optional<error> read_rule(const json& from, const std::string& place, mock_script::data& out) {
  script_reader r{
    from, place, {"if_last_contains", "if_task_contains", "if_model", "from_turn", "reply"}};
  r.require("reply");
  mock_rule rule;
  rule.if_last_contains = r.text("if_last_contains");
  rule.if_task_contains = r.text("if_task_contains");
  rule.if_model = r.text("if_model");
  rule.from_turn = static_cast<std::uint32_t>(
    r.number("from_turn", 0, std::numeric_limits<std::uint32_t>::max()).value_or(0));
  if (auto* reply = r.find("reply"))
    r.set_error(read_reply(*reply, r.at("reply"), rule.reply));
  out.rules.push_back(std::move(rule));
  return r.failed();
}

std::optional<error> read_stream(const json& from, mock_stream& out) {
  constexpr double one_utf8_sequence = 4;
  script_reader r{from, "stream", {"chunk_bytes", "gap"}};
  out.chunk_bytes =
    static_cast<std::size_t>(r.number("chunk_bytes", one_utf8_sequence, 1u << 20).value_or(20));
  if (auto* gap = r.find("gap"))
    r.set_error(read_latency(*gap, r.at("gap"), out.gap));
  return r.failed();
}

std::optional<error> read_limits(const json& from, mock_limit_settings& out) {
  script_reader r{from,
                  "limits",
                  {"requests_per_minute", "tokens_per_minute", "input_tokens_per_minute",
                   "output_tokens_per_minute", "concurrent", "burst_ms", "reject", "headers"}};
  out.requests = r.count("requests_per_minute").value_or(0);
  out.tokens = r.count("tokens_per_minute").value_or(0);
  out.input_tokens = r.count("input_tokens_per_minute").value_or(0);
  out.output_tokens = r.count("output_tokens_per_minute").value_or(0);
  out.concurrent = r.count("concurrent").value_or(0);
  out.burst = r.span("burst_ms").value_or(out.burst);
  out.reject = r.number("reject", 0, 1).value_or(out.reject);
  out.headers = r.boolean("headers").value_or(true);
  return r.failed();
}

std::optional<error> read_fault(const json& from, const std::string& place,
                                std::vector<fault_rule>& out) {
  script_reader r{
    from,
    place,
    {"kind", "rate", "every", "burst", "every_ms", "burst_ms", "at", "pause_ms", "retry_after_ms"}};
  r.require("kind");
  fault_rule rule;
  if (auto name = r.text("kind")) {
    auto kind = fault_kind_from(*name);
    if (!kind)
      r.set_error(r.at("kind"), "no fault is called " + in_quotes(*name)
                                  + did_you_mean(*name, fault_kind_names()));
    rule.kind = kind.value_or(rule.kind);
  }
  rule.rate = r.number("rate", 0, 1).value_or(rule.rate);
  rule.every = r.count("every").value_or(0);
  rule.burst = r.count("burst").value_or(1);
  rule.every_span = r.span("every_ms").value_or(millis{0});
  rule.burst_span = r.span("burst_ms").value_or(millis{0});
  rule.at = r.number("at", 0, 1);
  rule.pause = r.span("pause_ms").value_or(rule.pause);
  rule.retry_after = r.span("retry_after_ms");
  out.push_back(rule);
  return r.failed();
}

/// The members that troupe mock alone looks at.
void read_server(script_reader& r, mock_script::data& out) {
  if (auto* stream = r.find("stream"))
    r.set_error(read_stream(*stream, out.stream));
  if (auto* limits = r.find("limits"))
    r.set_error(read_limits(*limits, out.limits));
  r.each("faults", "objects", [&](const json& fault, const std::string& place) {
    return read_fault(fault, place, out.faults);
  });
  r.each("models", "strings",
         [&](const json& name, const std::string& place) -> std::optional<error> {
           if (!name.is_string())
             return error{errc::invalid_argument, "mock script, " + place + ": expected a string"};
           out.models.push_back(name.get<std::string>());
           return std::nullopt;
         });
}

}  // namespace

std::string escaped_for_lookup(std::string_view task) {
  std::string out;
  append_json_string(out, task);
  return out.substr(1, out.size() - 2);
}

result<mock_script::data> read_mock_script(std::string_view json_text) {
  constexpr unsigned deepest = 32;
  auto parsed = parse_json(json_text, {.max_bytes = 1u << 30, .max_depth = deepest});
  if (!parsed)
    return fail(parsed.error().code, "mock script, " + parsed.error().detail);
  mock_script::data out;
  script_reader r{*parsed,
                  "",
                  {"latency", "failures", "conversations", "rules", "default", "stream", "models",
                   "limits", "faults"}};
  if (auto* latency = r.find("latency"))
    r.set_error(read_latency(*latency, "latency", out.latency));
  if (auto* failures = r.find("failures"))
    r.set_error(read_failures(*failures, out.failures));
  r.each("conversations", "objects",
         [&](const json& x, const std::string& place) { return read_conversation(x, place, out); });
  r.each("rules", "objects",
         [&](const json& x, const std::string& place) { return read_rule(x, place, out); });
  if (auto* reply = r.find("default"))
    r.set_error(read_reply(*reply, "default", out.fallback.emplace()));
  read_server(r, out);
  if (r.failed())
    return fail(*r.failed());
  return out;
}

}  // namespace troupe
