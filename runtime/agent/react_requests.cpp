// What the loop asks the model for besides what a kind acts upon: plans, the forced answer, and
// summaries when the context is full.
#include "runtime/agent/code_parser.hpp"
#include "runtime/agent/react_loop.hpp"
#include "runtime/core/text.hpp"

#include <utility>

namespace troupe {
namespace {

constexpr std::string_view left_out =
  "[The older part of the work was left out here to make room in the context; no summary of it "
  "could be made.]";

std::string plan_in(const model_reply& reply, std::size_t max_bytes) {
  auto text = without_thoughts(to_utf8(reply.text));
  text.resize(std::min(text.size(), text.find(end_of_plan)));
  return cut_middle(trim(text), max_bytes);
}

/// True for a refusal that is about the schema of the output.
bool is_about_output(std::string_view detail) {
  for (std::string_view word : {"schema", "response_format", "output_config", "text.format"})
    if (detail.find(word) != std::string_view::npos)
      return true;
  return false;
}

}  // namespace

void react_loop::ask(commands& out) {
  if (spent_budget(out))
    return;
  if (plan_is_due())
    return request(phase::planning, out);
  request(step_++ == options().max_steps ? phase::answering : phase::thinking, out);
}

bool react_loop::spent_budget(commands& out) {
  auto budget = options().token_budget;
  if (budget == 0 || totals_.tokens.total() < budget)
    return false;
  end_run(run_end::budget, std::nullopt,
          std::to_string(totals_.tokens.total()) + " of " + std::to_string(budget) + " tokens used",
          out);
  return true;
}

void react_loop::request(phase what, commands& out) {
  if (!asks_for_room(what, out))
    send(what, out);
}

void react_loop::send(phase what, commands& out) {
  auto& d = *definition_;
  at_ = what;
  if (what == phase::thinking)
    return send(plain_output_ ? d.plain_settings : d.settings, messages(), out);
  if (what == phase::planning)
    return send(d.plan_settings, plan_conversation(), out);
  auto asked = forced_conversation();
  send(plain_output_ ? d.plain_forced_settings : d.forced_settings, asked, out);
  if (d.shape)
    rare_.made().asked = std::move(asked);
}

void react_loop::send(const std::shared_ptr<const model_settings>& settings,
                      const transcript& conversation, commands& out) const {
  out.push_back(ask_model{{settings, conversation.view(), run_, totals_.turns, deadline_}});
}

// --- the forced answer --------------------------------------------------------------------------

/// Other messages around the same memory, which is copied this once.
transcript react_loop::forced_conversation() const {
  auto asked =
    messages().with_first({.from = role::system, .content = definition_->forced_pre(task_)});
  asked.append({.from = role::user, .content = definition_->forced_post(task_)});
  return asked;
}

void react_loop::ask_forced_again(const value& answer, std::string_view why, commands& out) {
  auto& d = *definition_;
  auto& asked = *rare_.made().asked;
  asked.append({.from = role::assistant,
                .content = answer.text.empty()
                             ? "(an empty text)"
                             : cut_middle(answer.text, options().max_reply_bytes)});
  asked.append({.from = role::user,
                .content = "Error:\nYour answer was not accepted: " + std::string{why}
                           + "\nGive the mended answer, and nothing around it."});
  at_ = phase::answering;
  send(plain_output_ ? d.plain_forced_settings : d.forced_settings, asked, out);
}

bool react_loop::retry_plainly(const model_failure& failure, commands& out) {
  auto& d = *definition_;
  auto held = at_ == phase::thinking    ? d.settings != d.plain_settings
              : at_ == phase::answering ? d.forced_settings != d.plain_forced_settings
                                        : false;
  if (plain_output_ || !held || failure.kind != failure_class::bad_request
      || !is_about_output(failure.detail))
    return false;
  plain_output_ = true;
  out.push_back(note{"output_schema_refused", {{"step", step_}, {"why", to_utf8(failure.detail)}}});
  send(at_, out);
  return true;
}

// --- plans --------------------------------------------------------------------------------------

bool react_loop::plan_is_due() const noexcept {
  auto interval = options().planning_interval;
  return interval > 0 && step_ < options().max_steps && step_ % interval == 0
         && planned_ != step_ + 1;
}

/// The first plan sees the task alone; where anything came before, there is work to look at.
bool react_loop::is_first_plan() const noexcept {
  constexpr std::size_t system_and_task = 2;
  return step_ == 0 && messages().size() == system_and_task;
}

transcript react_loop::plan_conversation() const {
  if (is_first_plan()) {
    transcript asked{encode_};
    auto task = task_message();
    task.content = definition_->first_plan(task_);
    asked.append(task);
    return asked;
  }
  auto asked =
    messages().with_first({.from = role::system, .content = definition_->plan_pre(task_)});
  asked.append(
    {.from = role::user, .content = definition_->plan_post(task_, options().max_steps - step_)});
  return asked;
}

void react_loop::take_plan(const model_reply& reply, commands& out) {
  auto plan = plan_in(reply, options().max_reply_bytes);
  out.push_back(note{"plan",
                     {{"step", step_ + 1},
                      {"update", !is_first_plan()},
                      {"remaining_steps", options().max_steps - step_},
                      {"text", plan}}});
  planned_ = step_ + 1;
  if (!plan.empty())
    memory_.append_plan("My plan:\n" + plan);
  ask(out);
}

// --- the context window -------------------------------------------------------------------------

/// Shortens what is about to be sent if it is too long. True when a summary is asked for first.
bool react_loop::asks_for_room(phase what, commands& out) {
  auto& c = options().context;
  auto too_long = [&] { return gauge_.too_long(messages().bytes(), c.share); };
  if (!too_long())
    return false;
  (void)note_compaction("observations",
                        memory_.cut_observations(gauge_.target(c.share), c.keep_steps), {}, out);
  // A summary costs a call, and the provider's cache: it must be worth it.
  constexpr std::size_t worth_it = 8;
  if (!too_long() || memory_.old_bytes(c.keep_steps) < messages().bytes() / worth_it)
    return false;
  ask_summary(what, out);
  return true;
}

void react_loop::ask_summary(phase then, commands& out) {
  rare_.made().wanted = then;
  at_ = phase::summarising;
  auto asked = messages();
  asked.append({.from = role::user, .content = definition_->summary_prompt(task_)});
  send(definition_->plain_forced_settings, asked, out);
}

void react_loop::take_summary(std::string_view text, commands& out) {
  auto summary = text.empty() ? std::string{left_out}
                              : "Summary of the older part of the work, which is no longer shown:\n"
                                  + cut_middle(text, options().max_reply_bytes);
  auto done = memory_.replace_old(summary, options().context.keep_steps, task_message());
  (void)note_compaction(text.empty() ? "left_out" : "summary", done, text, out);
  if (!spent_budget(out))
    send(rare_.made().wanted, out);
}

/// Makes a request that the provider has found too long shorter, in up to three ways, and sends it
/// again.
bool react_loop::retry_shorter(const model_failure& failure, commands& out) {
  if (failure.kind != failure_class::context_length)
    return false;
  gauge_.learn(window_in(failure.detail).value_or(0));
  auto what = at_;
  if (what == phase::summarising) {
    take_summary({}, out);
    return true;
  }
  constexpr std::uint8_t ways = 3;
  while (refusals_ < ways)
    if (make_room(++refusals_, what, out)) {
      if (at_ != phase::summarising)
        send(what, out);
      return true;
    }
  return false;
}

/// False when the way leads nowhere.
bool react_loop::make_room(std::uint8_t way, phase what, commands& out) {
  auto keep = options().context.keep_steps;
  if (way == 1)
    return note_compaction("observations", memory_.cut_observations(0, keep), {}, out);
  if (way == 3)
    return note_compaction("squeeze", memory_.squeeze(), {}, out);
  if (memory_.old_bytes(keep) == 0)
    return false;
  ask_summary(what, out);
  return true;
}

/// False for nothing done.
bool react_loop::note_compaction(std::string_view how, const compaction& done,
                                 std::string_view text, commands& out) const {
  if (done.messages == 0)
    return false;
  json payload{{"step", step_},
               {"how", how},
               {"bytes_before", done.bytes_before},
               {"bytes_after", done.bytes_after},
               {"messages", done.messages}};
  if (!text.empty())
    payload["text"] = text;
  out.push_back(note{"compaction", std::move(payload)});
  return true;
}

}  // namespace troupe
