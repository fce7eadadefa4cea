#include "runtime/model/mock_model.hpp"

#include "runtime/core/json.hpp"
#include "runtime/model/chat_text.hpp"
#include "runtime/model/mock_script.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace troupe {
namespace {

// openai_codec() begins each message so, and inside its strings every quote stands behind a
// backslash: these bytes occur nowhere but at a message's start.
constexpr std::string_view message_start = "{\"role\":\"";
constexpr std::string_view user_start = "{\"role\":\"user\",\"content\":\"";
constexpr std::string_view assistant_start = "{\"role\":\"assistant\"";
constexpr std::string_view escaped_prefix = "New task:\\n";
constexpr std::string_view task_prefix = "New task:\n";

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

/// The text of all that came since the model's last reply.
std::string last_text(std::string_view messages) {
  auto spoke = messages.rfind(assistant_start);
  auto from = messages.find(message_start, spoke == std::string_view::npos ? 0 : spoke + 1);
  if (from == std::string_view::npos)
    return {};
  auto parsed = json::parse("[" + std::string{messages.substr(from)} + "]", nullptr, false);
  std::string out;
  for (auto& message : parsed)
    if (auto text = string_or(message, "content"); string_or(message, "role") != "system") {
      out += out.empty() ? "" : "\n";
      out += text;
    }
  return out;
}

bool fits(const mock_rule& rule, const mock_question& q) {
  auto contains = [](std::string_view text, const std::optional<std::string>& part) {
    return !part || text.find(*part) != std::string_view::npos;
  };
  return q.turn >= rule.from_turn && (!rule.if_model || *rule.if_model == q.model)
         && contains(q.last, rule.if_last_contains) && contains(q.task, rule.if_task_contains);
}

mock_reply by_rule(const mock_script::data& script, const mock_question& q) {
  for (auto& rule : script.rules)
    if (fits(rule, q))
      return rule.reply;
  if (script.fallback)
    return *script.fallback;
  mock_reply none;
  none.text = "mock: the script has no reply for turn " + std::to_string(q.turn) + " of the task '"
              + one_line(q.task, 80) + "'; add a conversation, a rule or a default";
  return none;
}

const mock_reply* by_conversation(const mock_script::data& script, std::string_view escaped,
                                  std::uint32_t turn) {
  auto found = script.conversations.find(escaped);
  return found != script.conversations.end() && turn < found->second.size() ? &found->second[turn]
                                                                            : nullptr;
}

const mock_reply* by_turn(const mock_script::data& script, std::uint32_t turn) {
  auto& all = script.every_run;
  return all.empty() ? nullptr : &all[std::min<std::size_t>(turn, all.size() - 1)];
}

model_failure failure_of(const mock_failure& settings) {
  model_failure failure;
  failure.kind = settings.kind;
  failure.detail =
    "mock: a failure of kind " + std::string{to_string(settings.kind)} + ", as the script asks";
  failure.retry_after = settings.retry_after;
  return failure;
}

std::string made_up_id(std::string_view prefix, rng& random) {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx",
                static_cast<unsigned long long>(random.next()));
  return std::string{prefix} + digits.data();
}

std::uint64_t bytes_of(const model_reply& reply) {
  auto sum = reply.text.size() + reply.reasoning.size();
  for (auto& call : reply.tool_calls)
    sum += call.name.size() + call.arguments.size();
  return sum;
}

model_reply filled(const mock_reply& said, const mock_question& q, rng& random) {
  model_reply out;
  out.text = said.text;
  out.reasoning = said.reasoning;
  out.model = q.model;
  out.tool_calls = said.tool_calls;
  for (auto& call : out.tool_calls)
    if (call.id.empty())
      call.id = made_up_id(q.call_prefix, random);
  out.finish_reason = !said.finish_reason.empty() ? said.finish_reason
                      : said.tool_calls.empty()   ? "stop"
                                                  : "tool_calls";
  auto& usage = said.usage;
  out.usage.input = usage.input.value_or(q.input_tokens);
  out.usage.output = usage.output.value_or(bytes_of(out) / 4);
  out.usage.cached = usage.cached.value_or(0);
  out.usage.reasoning = usage.reasoning.value_or(said.reasoning.size() / 4);
  out.usage.cache_written = usage.cache_written.value_or(0);
  return out;
}

/// Latency and failure are drawn before it is known which reply fits: the order of draws does not
/// depend on the conversation.
template <class Find>
mock_script::drawn draw(const mock_script::data& script, rng& random, Find find_reply) {
  mock_script::drawn out{model_reply{}, script.latency.draw(random)};
  auto fails = script.failures.rate > 0 && random.uniform() < script.failures.rate;
  if (fails) {
    out.reply = tl::unexpected<model_failure>(failure_of(script.failures.how));
    return out;
  }
  find_reply(out);
  return out;
}

void say(const mock_reply& said, const mock_question& q, rng& random, mock_script::drawn& out) {
  if (said.latency)
    out.latency = *said.latency;
  if (said.failure)
    out.reply = tl::unexpected<model_failure>(failure_of(*said.failure));
  else
    out.reply = filled(said, q, random);
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

mock_script mock_script::of(data contents) {
  return mock_script{std::make_shared<const data>(std::move(contents))};
}

mock_script mock_script::repeating(const std::string& reply, std::uint32_t turns,
                                   std::string last) {
  auto script = std::make_shared<data>();
  script->every_run.assign(turns, mock_reply{.text = reply});
  script->every_run.push_back(mock_reply{.text = std::move(last)});
  return mock_script{std::move(script)};
}

mock_script::drawn mock_script::answer(const model_request& request, rng& random) const {
  return draw(*data_, random, [&](drawn& out) {
    mock_question q;
    q.turn = request.turn;
    q.model = request.settings ? std::string_view{request.settings->model} : "mock";
    q.input_tokens = request.messages.size / 4;
    if (auto* reply = by_turn(*data_, q.turn))
      return say(*reply, q, random, out);
    const auto messages = request.messages.text();
    auto escaped = escaped_task(messages);
    if (auto* reply = by_conversation(*data_, escaped, q.turn))
      return say(*reply, q, random, out);
    const auto task = unescaped(escaped);
    const auto last = data_->rules.empty() ? std::string{} : last_text(messages);
    q.task = task;
    q.last = last;
    say(by_rule(*data_, q), q, random, out);
  });
}

mock_script::drawn mock_script::answer(const mock_question& question, rng& random) const {
  return draw(*data_, random, [&](drawn& out) {
    if (auto* reply = by_turn(*data_, question.turn))
      return say(*reply, question, random, out);
    auto q = question;
    if (q.task.starts_with(task_prefix))
      q.task.remove_prefix(task_prefix.size());
    if (!data_->conversations.empty())
      if (auto* reply = by_conversation(*data_, escaped_for_lookup(q.task), q.turn))
        return say(*reply, q, random, out);
    say(by_rule(*data_, q), q, random, out);
  });
}

}  // namespace troupe
