#include "runtime/agent/code_agent.hpp"

#include "runtime/agent/code_parser.hpp"
#include "runtime/agent/observation.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <stdexcept>
#include <utility>

namespace troupe {
namespace {

std::shared_ptr<const agent_definition> defined(const agent_options& options) {
  auto definition = define_agent(options);
  if (!definition)
    throw std::invalid_argument(definition.error().detail);
  return *std::move(definition);
}

std::string as_utf8(std::string_view text) {
  return is_utf8(text) ? std::string{text} : to_utf8(text);
}

std::string_view to_string(code_source source) {
  switch (source) {
  case code_source::none:
    return "none";
  case code_source::tags:
    return "tags";
  case code_source::fence:
    return "fence";
  case code_source::bare:
    return "bare";
  }
  return "none";
}

/// The system messages of a chat input become part of the one system message.
std::string with_system_of(std::string prompt, const std::vector<chat_message>& history) {
  for (auto& message : history)
    if (message.from == role::system)
      prompt += "\n\n" + as_utf8(message.content);
  return prompt;
}

observation_limits limits_of(const agent_options& o) {
  return {o.max_log_bytes, o.max_value_bytes, o.max_error_bytes};
}

constexpr std::string_view repeat_nudge =
  "\n\nYou have done exactly this several times now, with exactly this result. Doing it again will "
  "not help: try something else, or call final_answer with the best answer you have.";

}  // namespace

code_agent::code_agent(std::shared_ptr<const agent_definition> definition, message_encoder encode,
                       run_id run)
  : definition_{std::move(definition)}, encode_{encode}, messages_{encode}, run_{run} {}

code_agent::code_agent(std::shared_ptr<const agent_definition> definition, message_encoder encode,
                       transcript start, run_id run)
  : definition_{std::move(definition)}, encode_{encode}, messages_{std::move(start)}, run_{run} {}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as its sibling takes it
code_agent::code_agent(std::shared_ptr<const agent_options> options, message_encoder encode,
                       run_id run)
  : code_agent{defined(*options), encode, run} {}

transcript code_agent::start_of(const agent_definition& definition, message_encoder encode) {
  transcript start{encode};
  if (!definition.system_prompt.empty())
    start.append({role::system, definition.system_prompt, {}, {}});
  return start;
}

std::vector<agent_command> code_agent::on(const agent_event& event, time_point now) {
  commands out;
  if (at_ != state::done)
    std::visit([&](const auto& e) { take(e, now, out); }, event);
  return out;
}

void code_agent::take(const run_started& e, time_point now, commands& out) {
  if (at_ != state::idle)
    return;
  task_ = as_utf8(e.task);
  if (options().run_time > millis{0})
    deadline_ = after(now, options().run_time);
  auto system = with_system_of(definition_->system_for(task_), e.history);
  if (system != definition_->system_prompt || messages_.size() == 0) {
    messages_ = transcript{encode_};
    say(role::system, std::move(system));
  }
  for (auto& message : e.history)
    if (message.from != role::system)
      messages_.append(message);
  say(role::user, "New task:\n" + task_);
  ask(out);
}

void code_agent::take(const model_replied& e, time_point now, commands& out) {
  if (at_ != state::thinking && at_ != state::answering)
    return;
  ++totals_.turns;
  totals_.tokens += e.reply.usage;
  totals_.model_attempts += e.reply.attempts;
  if (at_ == state::answering)
    answer_by_text(e.reply, out);
  else
    act(e.reply, now, out);
}

void code_agent::act(const model_reply& reply, time_point now, commands& out) {
  auto& o = options();
  code_tags tags{o.code_open, o.code_close};
  auto parsed = parse_reply(as_utf8(reply.text), tags);
  auto& text = parsed.message.empty() ? reply.text : parsed.message;
  messages_.append(
    {.from = role::assistant,
     .content = text.empty() ? "(empty reply)" : cut_middle(as_utf8(text), o.max_reply_bytes),
     .kept = reply.kept});
  auto prose = parsed.source == code_source::bare || parsed.source == code_source::none;
  format_error_ = prose ? error_text(format_error(parsed, tags)) : "";
  action_ = std::move(parsed.code);
  if (parsed.source == code_source::none)
    return go_on(std::move(format_error_), true, out);
  if (auto why = why_not_run(parsed.cut && reply.finish_reason == "length"); !why.empty())
    return go_on(error_text(why), true, out);
  out.push_back(
    note{"action", {{"step", step_}, {"code", action_}, {"source", to_string(parsed.source)}}});
  run(parsed.source == code_source::bare, now, out);
}

/// Half a program must not run; one that no sandbox would take need not be sent.
std::string code_agent::why_not_run(bool cut_short) const {
  auto limit = options().max_code_bytes;
  if (cut_short)
    return "Your reply reached its greatest length before the code ended, so the code was not run. "
           "Write shorter code, or do it in several turns.";
  if (action_.size() > limit)
    return "Your code is " + std::to_string(action_.size())
           + " bytes long and was not run; at most " + std::to_string(limit)
           + " are allowed. Write less at once.";
  return {};
}

void code_agent::run(bool may_be_prose, time_point now, commands& out) {
  auto soft = std::min(after(now, options().step_time), deadline_);
  auto hard = std::min(after(soft, options().step_grace), deadline_);
  at_ = state::running;
  out.push_back(run_code{snippet{action_, may_be_prose, soft, hard}});
}

void code_agent::take(const snippet_done& e, time_point, commands& out) {
  if (at_ != state::running)
    return;
  auto& outcome = e.outcome;
  totals_.sandbox += outcome.usage;
  if (outcome.end == snippet_end::not_code)
    return go_on(format_error_.empty() ? error_text("Your code is not Python.")
                                       : std::move(format_error_),
                 true, out);
  ++totals_.snippets;
  if (outcome.is_final && outcome.end == snippet_end::ok)
    return answer_by_code(outcome, out);
  if (outcome.end != snippet_end::ok)
    ++totals_.snippet_failures;
  go_on(observation_text(outcome, action_, limits_of(options())), outcome.end != snippet_end::ok,
        out);
}

void code_agent::answer_by_code(const snippet_outcome& outcome, commands& out) {
  auto answer = outcome.result.value_or(value{nullptr, "None"});
  auto ok = checked(answer);
  json payload{{"step", step_},
               {"text", as_utf8(answer.text)},
               {"value", answer.tagged},
               {"accepted", ok.has_value()},
               {"forced", false}};
  if (!ok)
    payload["why"] = ok.error().detail;
  out.push_back(note{"final_answer", std::move(payload)});
  if (ok)
    return end_run(run_end::success, std::move(answer), "", out);
  go_on(refusal_text(outcome, ok.error().detail, limits_of(options())), true, out);
}

void code_agent::answer_by_text(const model_reply& reply, commands& out) {
  auto text = without_thoughts(as_utf8(reply.text));
  auto steps = "no answer after " + std::to_string(options().max_steps) + " steps";
  if (text.empty())
    return end_run(run_end::max_steps, std::nullopt, steps + ", and the forced answer was empty",
                   out);
  value answer{text, text};
  auto ok = checked(answer);
  json payload{{"step", step_},
               {"text", text},
               {"value", text},
               {"accepted", ok.has_value()},
               {"forced", true}};
  if (!ok)
    payload["why"] = ok.error().detail;
  out.push_back(note{"final_answer", std::move(payload)});
  if (ok)
    return end_run(run_end::max_steps, std::move(answer), steps, out);
  end_run(run_end::max_steps, std::nullopt,
          steps + "; the forced answer was refused: " + ok.error().detail, out);
}

void code_agent::take(const model_failed& e, time_point now, commands& out) {
  if (at_ != state::thinking && at_ != state::answering)
    return;
  totals_.model_attempts += e.failure.attempts;
  if (e.failure.kind == failure_class::timeout && now >= deadline_)
    return end_run(run_end::deadline, std::nullopt, "the run's time was up", out);
  if (e.failure.kind == failure_class::cancelled)
    return end_run(run_end::cancelled, std::nullopt, as_utf8(e.failure.detail), out);
  auto end = e.failure.kind == failure_class::budget ? run_end::budget : run_end::error;
  end_run(end, std::nullopt, as_utf8(e.failure.detail), out);
}

void code_agent::take(const sandbox_failed& e, time_point, commands& out) {
  if (at_ == state::running)
    end_run(run_end::error, std::nullopt, "no sandbox: " + as_utf8(e.detail), out);
}

void code_agent::take(const cancel_requested& e, time_point, commands& out) {
  interrupt(run_end::cancelled, e.reason.empty() ? "cancelled" : as_utf8(e.reason), out);
}

void code_agent::take(const deadline_passed&, time_point, commands& out) {
  if (at_ != state::idle && deadline_ != never)
    interrupt(run_end::deadline,
              "the run's time of " + std::to_string(options().run_time.count()) + " ms was up",
              out);
}

void code_agent::interrupt(run_end end, std::string why, commands& out) {
  if (at_ != state::idle)
    out.push_back(abandon{});
  end_run(end, std::nullopt, std::move(why), out);
}

/// Puts the observation before the model, and asks for the next step.
void code_agent::go_on(std::string text, bool is_error, commands& out) {
  text = as_utf8(text);
  auto repeats = count_repeats(text);
  auto limit = options().repeat_limit;
  auto stuck = limit > 0 && repeats > limit;
  if (limit > 0 && repeats == limit)
    text += repeat_nudge;
  out.push_back(note{"observation", {{"step", step_}, {"text", text}, {"is_error", is_error}}});
  say(role::user, std::move(text));
  if (stuck)
    return end_run(
      run_end::stuck, std::nullopt,
      "the same action gave the same observation " + std::to_string(repeats) + " times", out);
  ask(out);
}

std::uint32_t code_agent::count_repeats(std::string_view observation) {
  std::hash<std::string_view> hash;
  auto turn = hash(action_) * 31 + hash(observation);
  repeats_ = repeats_ > 0 && turn == last_turn_ ? repeats_ + 1 : 1;
  last_turn_ = turn;
  return repeats_;
}

void code_agent::ask(commands& out) {
  auto budget = options().token_budget;
  if (budget > 0 && totals_.tokens.total() >= budget)
    return end_run(run_end::budget, std::nullopt,
                   std::to_string(totals_.tokens.total()) + " of " + std::to_string(budget)
                     + " tokens used",
                   out);
  if (step_++ == options().max_steps)
    return ask_for_answer(out);
  at_ = state::thinking;
  out.push_back(
    ask_model{{definition_->settings, messages_.view(), run_, totals_.turns, deadline_}});
}

/// One call with other messages around the same memory, which is copied this once.
void code_agent::ask_for_answer(commands& out) {
  auto asked = messages_.with_first({role::system, definition_->forced_pre(task_), {}, {}});
  asked.append({role::user, definition_->forced_post(task_), {}, {}});
  at_ = state::answering;
  out.push_back(
    ask_model{{definition_->forced_settings, asked.view(), run_, totals_.turns, deadline_}});
}

void code_agent::end_run(run_end end, std::optional<value> answer, std::string why, commands& out) {
  at_ = state::done;
  totals_.end = end;
  totals_.answer = std::move(answer);
  std::replace(why.begin(), why.end(), '\n', ' ');
  totals_.error = std::move(why);
  out.push_back(std::move(totals_));
}

result<void> code_agent::checked(const value& answer) const {
  for (auto& check : options().checks) {
    try {
      if (auto ok = check.check(answer); !ok)
        return fail(ok.error().code, "the check '" + check.name + "' failed: " + ok.error().detail);
    } catch (const std::exception& e) {
      return fail(errc::internal, "the check '" + check.name + "' failed: " + e.what());
    }
  }
  return {};
}

void code_agent::say(role from, std::string content) {
  messages_.append({from, std::move(content), {}, {}});
}

}  // namespace troupe
