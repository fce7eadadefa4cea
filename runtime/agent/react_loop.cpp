#include "runtime/agent/react_loop.hpp"

#include "runtime/agent/code_parser.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

namespace troupe {
namespace {

/// The system messages of a chat input become part of the one system message.
std::string with_system_of(std::string prompt, const std::vector<chat_message>& history) {
  for (auto& message : history)
    if (message.from == role::system)
      prompt += "\n\n" + to_utf8(message.content);
  return prompt;
}

/// About what providers charge for one of usual size. Source  OpenAI guide, "Images and vision";
/// Anthropic, "Vision".
constexpr std::uint64_t tokens_per_image = 1'000;

std::size_t total_bytes(const std::vector<std::string>& texts) {
  std::size_t out = 0;
  for (auto& text : texts)
    out += text.size();
  return out;
}

constexpr std::string_view repeat_nudge =
  "\n\nYou have done exactly this several times now, with exactly this result. Doing it again will "
  "not help: try something else, or call final_answer with the best answer you have.";

}  // namespace

react_loop::react_loop(std::shared_ptr<const agent_definition> definition, message_encoder encode,
                       transcript start, run_id run)
  : memory_{std::move(start)}, definition_{std::move(definition)}, encode_{encode}, run_{run},
    gauge_{definition_->options.context.window} {}

transcript react_loop::start_of(const agent_definition& definition, message_encoder encode) {
  transcript start{encode};
  if (!definition.system_prompt.empty())
    start.append({role::system, definition.system_prompt, {}, {}});
  return start;
}

void react_loop::take(const run_started& e, time_point now, commands& out) {
  if (at_ != phase::idle)
    return;
  task_ = to_utf8(e.task);
  time_ = options().run_time;
  if (e.time_left > millis{0} && (time_ == millis{0} || e.time_left < time_))
    time_ = e.time_left;
  if (time_ > millis{0})
    deadline_ = after(now, time_);
  auto system = with_system_of(definition_->system_for(task_), e.history);
  if (system != definition_->system_prompt || messages().size() == 0) {
    memory_ = run_memory{transcript{encode_}};
    say(role::system, std::move(system));
  }
  for (auto& message : e.history)
    if (message.from != role::system)
      memory_.append(message);
  auto task = task_message();
  task.images = e.images;
  memory_.append_task(task);
  // They may be large: they are kept only where they may have to be written again.
  if (!e.images.empty() && (options().planning_interval > 0 || !e.history.empty()))
    rare_.made().images = e.images;
  gauge_.begin(total_bytes(e.images), e.images.size() * tokens_per_image);
  ask(out);
}

chat_message react_loop::task_message() const {
  return {.from = role::user,
          .content = "New task:\n" + task_,
          .images = rare_.get() != nullptr ? rare_.get()->images : std::vector<std::string>{}};
}

bool react_loop::is_asked() const noexcept {
  return at_ == phase::thinking || at_ == phase::answering || at_ == phase::planning
         || at_ == phase::summarising;
}

bool react_loop::is_for_kind(const model_reply& reply, commands& out) {
  if (!is_asked())
    return false;
  ++totals_.turns;
  totals_.tokens += reply.usage;
  if (reply.usage.total() == 0)
    ++totals_.tokens.untold;
  totals_.model_attempts += reply.attempts;
  if (at_ == phase::summarising) {
    take_summary(without_thoughts(to_utf8(reply.text)), out);
    return false;
  }
  refusals_ = 0;
  if (at_ == phase::planning) {
    take_plan(reply, out);
    return false;
  }
  if (at_ == phase::thinking)
    gauge_.counted(messages().bytes(), reply.usage.input);
  return true;
}

void react_loop::answer_by_text(const model_reply& reply, commands& out) {
  auto text = without_thoughts(to_utf8(reply.text));
  if (text.empty())
    return end_run(run_end::max_steps, std::nullopt,
                   no_answer_yet() + ", and the forced answer was empty", out);
  answer_forced(definition_->shape ? definition_->shape->read(text) : value{text, text}, out);
}

void react_loop::answer_forced(value answer, commands& out) {
  auto misfits = misfits_;
  if (auto ok = judge(answer, true, out); !ok) {
    if (misfits_ > misfits && misfits_ <= options().answer_retries)
      return ask_forced_again(answer, ok.error().detail, out);
    return no_forced_answer(ok.error().detail, out);
  }
  end_run(run_end::max_steps, std::move(answer), no_answer_yet(), out);
}

void react_loop::no_forced_answer(std::string_view why, commands& out) {
  end_run(run_end::max_steps, std::nullopt,
          no_answer_yet() + "; the forced answer was refused: " + std::string{why}, out);
}

result<void> react_loop::judge(value& answer, bool forced, commands& out) {
  auto ok = definition_->shape ? definition_->shape->fit(answer) : result<void>{};
  misfits_ += ok ? 0 : 1;
  if (ok)
    ok = checked(answer);
  json payload{{"step", step_},
               {"text", to_utf8(answer.text)},
               {"value", answer.tagged},
               {"accepted", ok.has_value()},
               {"forced", forced}};
  if (!ok)
    payload["why"] = ok.error().detail;
  out.push_back(note{"final_answer", std::move(payload)});
  return ok;
}

bool react_loop::gave_up(std::string_view why, commands& out) {
  constexpr std::size_t shown = 500;
  if (misfits_ <= options().answer_retries)
    return false;
  end_run(run_end::error, std::nullopt,
          (misfits_ == 1 ? "1 answer was" : std::to_string(misfits_) + " answers were")
            + std::string{" not of the form that is asked for; the last: "}
            + cut_middle(why, shown),
          out);
  return true;
}

void react_loop::take(const model_failed& e, time_point now, commands& out) {
  if (!is_asked())
    return;
  totals_.model_attempts += e.failure.attempts;
  if (retry_shorter(e.failure, out) || retry_plainly(e.failure, out))
    return;
  if (e.failure.kind == failure_class::timeout && now >= deadline_)
    return end_run(run_end::deadline, std::nullopt, "the run's time was up", out);
  if (e.failure.kind == failure_class::cancelled)
    return end_run(run_end::cancelled, std::nullopt, to_utf8(e.failure.detail), out);
  auto end = e.failure.kind == failure_class::budget ? run_end::budget : run_end::error;
  end_run(end, std::nullopt, to_utf8(e.failure.detail), out);
}

void react_loop::take(const cancel_requested& e, time_point, commands& out) {
  interrupt(run_end::cancelled, e.reason.empty() ? "cancelled" : to_utf8(e.reason), out);
}

void react_loop::take(const deadline_passed&, time_point, commands& out) {
  if (at_ != phase::idle && deadline_ != never)
    interrupt(run_end::deadline,
              "the run's time of " + std::to_string(time_.count()) + " ms was up", out);
}

void react_loop::charge(const tool_replied& e) {
  if (e.used)
    totals_ += *e.used;
}

void react_loop::interrupt(run_end end, std::string why, commands& out) {
  if (at_ != phase::idle)
    out.push_back(abandon{});
  end_run(end, std::nullopt, std::move(why), out);
}

std::string_view react_loop::observe(std::string_view action, std::string_view text, bool is_error,
                                     commands& out) {
  count_repeats(action, text);
  auto limit = options().repeat_limit;
  auto nudge = limit > 0 && repeats_ == limit ? repeat_nudge : std::string_view{};
  out.push_back(
    note{"observation",
         {{"step", step_}, {"text", std::string{text}.append(nudge)}, {"is_error", is_error}}});
  return nudge;
}

void react_loop::go_on(std::string_view action, std::string text, bool is_error, commands& out) {
  text = to_utf8(text);
  text += observe(action, text, is_error, out);
  say(role::user, std::move(text));
  go_on(out);
}

void react_loop::go_on(commands& out) {
  auto limit = options().repeat_limit;
  if (limit > 0 && repeats_ > limit)
    return end_run(
      run_end::stuck, std::nullopt,
      "the same action gave the same observation " + std::to_string(repeats_) + " times", out);
  ask(out);
}

void react_loop::count_repeats(std::string_view action, std::string_view observation) {
  std::hash<std::string_view> hash;
  auto turn = hash(action) * 31 + hash(observation);
  repeats_ = repeats_ > 0 && turn == last_turn_ ? repeats_ + 1 : 1;
  last_turn_ = turn;
}

void react_loop::end_run(run_end end, std::optional<value> answer, std::string why, commands& out) {
  at_ = phase::done;
  totals_.end = end;
  totals_.answer = std::move(answer);
  std::replace(why.begin(), why.end(), '\n', ' ');
  totals_.error = std::move(why);
  out.push_back(std::move(totals_));
}

result<void> react_loop::checked(const value& answer) const {
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

observation_limits react_loop::limits() const {
  auto& o = options();
  observation_limits out{o.max_log_bytes, o.max_value_bytes, o.max_error_bytes};
  if (auto most = observation_bytes(o.context, gauge_)) {
    out.log_bytes = std::min(out.log_bytes, *most);
    out.value_bytes = std::min(out.value_bytes, *most);
    out.error_bytes = std::min(out.error_bytes, *most);
    out.all_bytes = *most;
  }
  return out;
}

std::string react_loop::no_answer_yet() const {
  return "no answer after " + std::to_string(options().max_steps) + " steps";
}

void react_loop::say(role from, std::string content) {
  memory_.append({.from = from, .content = std::move(content)});
}

}  // namespace troupe
