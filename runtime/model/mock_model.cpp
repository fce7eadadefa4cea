#include "runtime/model/mock_model.hpp"

#include "runtime/core/json.hpp"
#include "runtime/model/chat_text.hpp"
#include "runtime/model/mock_script.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

// openai_codec() begins each message so, and inside its strings every quote stands behind a
// backslash: these bytes occur nowhere but at a message's start.
constexpr std::string_view message_start = "{\"role\":\"";
constexpr std::string_view user_start = "{\"role\":\"user\",\"content\":\"";
constexpr std::string_view assistant_start = "{\"role\":\"assistant\"";
constexpr std::string_view escaped_prefix = "New task:\\n";

/// The escaped text of the last user message before the first assistant message.
std::string_view escaped_task(std::string_view messages) {
  auto before = messages.substr(0, messages.find(assistant_start));
  auto start = before.rfind(user_start);
  if (start == std::string_view::npos)
    return {};
  auto text = before.substr(start + user_start.size());
  // The text ends at the first quote that is not escaped: only a closing one is followed by }.
  text = text.substr(0, text.find(message_start));
  text = text.substr(0, text.rfind("\"}"));
  if (text.starts_with(escaped_prefix))
    text.remove_prefix(escaped_prefix.size());
  return text;
}

std::string unescaped(std::string_view text) {
  auto parsed = json::parse("\"" + std::string{text} + "\"", nullptr, false);
  return parsed.is_string() ? parsed.get<std::string>() : std::string{};
}

std::string last_text(std::string_view messages) {
  auto start = messages.rfind(message_start);
  if (start == std::string_view::npos)
    return {};
  auto parsed = json::parse(messages.substr(start), nullptr, false);
  return string_or(parsed, "content");
}

bool fits(const mock_rule& rule, std::uint32_t turn, std::string_view task, std::string_view last) {
  auto contains = [](std::string_view text, const std::optional<std::string>& part) {
    return !part || text.find(*part) != std::string_view::npos;
  };
  return turn >= rule.from_turn && contains(last, rule.if_last_contains)
         && contains(task, rule.if_task_contains);
}

std::string by_rule(const mock_script::data& script, std::string_view messages,
                    std::string_view escaped, std::uint32_t turn) {
  auto task = unescaped(escaped);
  auto last = script.rules.empty() ? std::string{} : last_text(messages);
  for (auto& rule : script.rules)
    if (fits(rule, turn, task, last))
      return rule.reply;
  if (script.fallback)
    return *script.fallback;
  return "mock: the script has no reply for turn " + std::to_string(turn) + " of the task '"
         + one_line(task, 80) + "'; add a conversation, a rule or a default";
}

std::string reply_text(const mock_script::data& script, const model_request& request) {
  auto turn = request.turn;
  if (!script.every_run.empty())
    return script.every_run[std::min<std::size_t>(turn, script.every_run.size() - 1)];
  const auto messages = request.messages.text();
  auto task = escaped_task(messages);
  auto found = script.conversations.find(task);
  if (found != script.conversations.end() && turn < found->second.size())
    return found->second[turn];
  return by_rule(script, messages, task, turn);
}

model_failure failure_of(const mock_failures& settings) {
  model_failure failure;
  failure.kind = settings.kind;
  failure.detail =
    "mock: a failure of kind " + std::string{to_string(settings.kind)} + ", as the script asks";
  failure.retry_after = settings.retry_after;
  return failure;
}

}  // namespace

micros latency_model::draw(rng& random) const {
  micros longest = std::max(cap, millis{0});
  micros middle = std::clamp<micros>(median, micros{0}, longest);
  if (sigma <= 0)
    return middle;
  auto drawn = static_cast<double>(middle.count()) * std::exp(sigma * random.normal());
  return drawn >= static_cast<double>(longest.count()) ? longest
                                                       : micros{static_cast<micros::rep>(drawn)};
}

result<mock_script> mock_script::parse(std::string_view json_text) {
  auto read = read_mock_script(json_text);
  if (!read)
    return fail(read.error());
  return mock_script{std::make_shared<const data>(std::move(*read))};
}

mock_script mock_script::repeating(const std::string& reply, std::uint32_t turns,
                                   std::string last) {
  auto script = std::make_shared<data>();
  script->every_run.assign(turns, reply);
  script->every_run.push_back(std::move(last));
  return mock_script{std::move(script)};
}

mock_script::drawn mock_script::answer(const model_request& request, rng& random) const {
  drawn out{model_reply{}, data_->latency.draw(random)};
  if (data_->failures.rate > 0 && random.uniform() < data_->failures.rate) {
    out.reply = tl::unexpected<model_failure>(failure_of(data_->failures));
    return out;
  }
  auto& reply = *out.reply;
  reply.text = reply_text(*data_, request);
  reply.finish_reason = "stop";
  reply.model = request.settings ? request.settings->model : "mock";
  reply.usage.input = request.messages.size / 4;
  reply.usage.output = reply.text.size() / 4;
  return out;
}

}  // namespace troupe
