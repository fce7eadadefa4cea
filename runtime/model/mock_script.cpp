#include "runtime/model/mock_script.hpp"

#include "runtime/core/json.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

std::string escaped(std::string_view task) {
  std::string out;
  append_json_string(out, task);
  return out.substr(1, out.size() - 2);
}

std::string in_quotes(std::string_view name) {
  return "'" + std::string{name} + "'";
}

/// Reads one object's members, keeping the first error. Places read like "rules[2].reply".
class object_reader {
public:
  object_reader(const json& object, std::string place, std::vector<std::string_view> known)
    : object_{object}, place_{std::move(place)} {
    if (!object_.is_object()) {
      set_error(place_.empty() ? "the script" : place_, "expected an object");
      return;
    }
    for (auto& [name, value] : object_.items())
      if (std::find(known.begin(), known.end(), name) == known.end())
        set_error(at(name), "unknown key" + did_you_mean(name, known));
  }

  [[nodiscard]] std::string at(std::string_view name) const {
    return (place_.empty() ? "" : place_ + ".") + std::string{name};
  }

  /// The member, or null when it is absent or an error was met before.
  const json* find(std::string_view name) const {
    if (error_ || !object_.is_object())
      return nullptr;
    auto it = object_.find(name);
    return it == object_.end() ? nullptr : &*it;
  }

  std::optional<std::string> text(std::string_view name) {
    auto* value = find(name);
    if (!value)
      return std::nullopt;
    if (!value->is_string())
      set_error(at(name), "expected a string");
    return value->is_string() ? std::optional{value->get<std::string>()} : std::nullopt;
  }

  std::optional<double> number(std::string_view name, double least, double most) {
    auto* value = find(name);
    if (!value)
      return std::nullopt;
    if (value->is_number() && value->get<double>() >= least && value->get<double>() <= most)
      return value->get<double>();
    set_error(at(name), "expected a number from " + dump_json(least) + " to " + dump_json(most));
    return std::nullopt;
  }

  std::optional<millis> span(std::string_view name) {
    constexpr double day = 86'400'000;
    auto ms = number(name, 0, day);
    return ms ? std::optional{millis{static_cast<millis::rep>(*ms)}} : std::nullopt;
  }

  void require(std::string_view name) {
    if (object_.is_object() && !object_.contains(name))
      set_error(at(name), "is missing");
  }

  void set_error(const std::string& place, std::string_view what) {
    if (!error_)
      error_ = error{errc::invalid_argument, "mock script, " + place + ": " + std::string{what}};
  }

  void set_error(std::optional<error> e) {
    if (!error_)
      error_ = std::move(e);
  }

  [[nodiscard]] const std::optional<error>& failed() const { return error_; }

private:
  const json& object_;
  std::string place_;
  std::optional<error> error_;
};

std::optional<error> read_latency(const json& from, latency_model& out) {
  object_reader r{from, "latency", {"median_ms", "sigma", "cap_ms"}};
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

std::optional<error> read_failures(const json& from, mock_failures& out) {
  object_reader r{from, "failures", {"rate", "kind", "retry_after_ms"}};
  out.rate = r.number("rate", 0, 1).value_or(out.rate);
  out.retry_after = r.span("retry_after_ms");
  if (auto name = r.text("kind")) {
    auto kind = failure_class_from(*name);
    if (!kind)
      r.set_error("failures.kind",
                  "no failure is called " + in_quotes(*name) + did_you_mean(*name, kind_names()));
    out.kind = kind.value_or(out.kind);
  }
  return r.failed();
}

std::optional<error> read_conversation(const json& from, const std::string& place,
                                       mock_script::data& out) {
  object_reader r{from, place, {"task", "replies"}};
  r.require("task");
  r.require("replies");
  auto task = r.text("task");
  std::vector<std::string> replies;
  auto* list = r.find("replies");
  if (list && !list->is_array())
    r.set_error(r.at("replies"), "expected an array of strings");
  else if (list)
    for (auto& reply : *list) {
      if (!reply.is_string()) {
        r.set_error(r.at("replies") + "[" + std::to_string(replies.size()) + "]",
                    "expected a string");
        break;
      }
      replies.push_back(reply.get<std::string>());
    }
  if (task && !r.failed() && !out.conversations.emplace(escaped(*task), std::move(replies)).second)
    r.set_error(r.at("task"), "an earlier conversation has the same task");
  return r.failed();
}

std::optional<error> read_rule(const json& from, const std::string& place, mock_script::data& out) {
  object_reader r{from, place, {"if_last_contains", "if_task_contains", "from_turn", "reply"}};
  r.require("reply");
  mock_rule rule;
  rule.if_last_contains = r.text("if_last_contains");
  rule.if_task_contains = r.text("if_task_contains");
  rule.from_turn = static_cast<std::uint32_t>(
    r.number("from_turn", 0, std::numeric_limits<std::uint32_t>::max()).value_or(0));
  rule.reply = r.text("reply").value_or("");
  out.rules.push_back(std::move(rule));
  return r.failed();
}

/// Reads each element of the array member `name`, if there is one.
template <class Read>
void read_each(object_reader& r, std::string_view name, mock_script::data& out, Read read) {
  auto* list = r.find(name);
  if (list && !list->is_array())
    r.set_error(std::string{name}, "expected an array of objects");
  else if (list)
    for (std::size_t i = 0; i < list->size() && !r.failed(); ++i)
      r.set_error(read((*list)[i], std::string{name} + "[" + std::to_string(i) + "]", out));
}

}  // namespace

result<mock_script::data> read_mock_script(std::string_view json_text) {
  auto parsed = parse_json(json_text, {.max_bytes = 1u << 30, .max_depth = 8});
  if (!parsed)
    return fail(parsed.error().code, "mock script, " + parsed.error().detail);
  mock_script::data out;
  object_reader r{*parsed, "", {"latency", "failures", "conversations", "rules", "default"}};
  if (auto* latency = r.find("latency"))
    r.set_error(read_latency(*latency, out.latency));
  if (auto* failures = r.find("failures"))
    r.set_error(read_failures(*failures, out.failures));
  read_each(r, "conversations", out, read_conversation);
  read_each(r, "rules", out, read_rule);
  out.fallback = r.text("default");
  if (r.failed())
    return fail(*r.failed());
  return out;
}

}  // namespace troupe
