#include "runtime/agent/code_agent.hpp"

#include "runtime/agent/code_parser.hpp"
#include "runtime/agent/observation.hpp"
#include "runtime/agent/structured_reply.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

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
  case code_source::structured:
    return "json";
  }
  return "none";
}

code_tags tags_of(const agent_options& o) {
  return {o.code_open, o.code_close};
}

/// The JSON that was asked for, else as any reply is read. What looks like JSON and is not is no
/// code, though Python might take it for a dict.
parsed_reply parsed_by(const agent_options& o, const model_reply& reply) {
  auto text = to_utf8(reply.text);
  if (o.structured)
    if (auto code = structured_code(text, tags_of(o)))
      return {.source = code_source::structured,
              .code = *std::move(code),
              .message = without_thoughts(text)};
  auto out = parse_reply(text, tags_of(o));
  if (o.structured && out.source == code_source::bare && out.code.starts_with('{'))
    out.source = code_source::none;
  return out;
}

std::string why_no_code(const agent_options& o, const parsed_reply& parsed,
                        const model_reply& reply) {
  if (!o.structured)
    return format_error(parsed, tags_of(o));
  auto code = structured_code(to_utf8(reply.text), tags_of(o));
  return structured_error(parsed.message, code ? "" : code.error().detail);
}

}  // namespace

code_agent::code_agent(std::shared_ptr<const agent_definition> definition, message_encoder encode,
                       transcript start, run_id run)
  : react_loop{std::move(definition), encode, std::move(start), run} {}

std::vector<agent_command> code_agent::on(const agent_event& event, time_point now) {
  commands out;
  if (!finished())
    std::visit([&](const auto& e) { take(e, now, out); }, event);
  return out;
}

void code_agent::take(const model_replied& e, time_point now, commands& out) {
  if (!is_for_kind(e.reply, out))
    return;
  if (at_ == phase::answering)
    answer_by_text(e.reply, out);
  else
    act(e.reply, now, out);
}

void code_agent::act(const model_reply& reply, time_point now, commands& out) {
  auto& o = options();
  auto parsed = parsed_by(o, reply);
  auto& text = parsed.message.empty() ? reply.text : parsed.message;
  memory_.append(
    {.from = role::assistant,
     .content = text.empty() ? "(empty reply)" : cut_middle(to_utf8(text), o.max_reply_bytes),
     .kept = reply.kept});
  auto prose = parsed.source == code_source::bare || parsed.source == code_source::none;
  format_error_ = prose ? error_text(why_no_code(o, parsed, reply)) : "";
  action_ = std::move(parsed.code);
  if (parsed.source == code_source::none)
    return go_on(action_, std::move(format_error_), true, out);
  if (auto why = why_not_run(parsed.cut && reply.finish_reason == "length"); !why.empty())
    return go_on(action_, error_text(why), true, out);
  out.push_back(
    note{"action", {{"step", step()}, {"code", action_}, {"source", to_string(parsed.source)}}});
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
  auto soft = std::min(after(now, options().step_time), deadline());
  auto hard = std::min(after(soft, options().step_grace), deadline());
  at_ = phase::acting;
  out.push_back(run_code{snippet{action_, may_be_prose, soft, hard}});
}

void code_agent::take(const snippet_done& e, time_point, commands& out) {
  if (at_ != phase::acting)
    return;
  auto& outcome = e.outcome;
  totals_.sandbox += outcome.usage;
  if (outcome.end == snippet_end::not_code)
    return go_on(action_,
                 format_error_.empty() ? error_text("Your code is not Python.")
                                       : std::move(format_error_),
                 true, out);
  ++totals_.snippets;
  if (outcome.is_final && outcome.end == snippet_end::ok)
    return answer_by_code(outcome, out);
  auto failed = outcome.end != snippet_end::ok;
  if (failed)
    ++totals_.snippet_failures;
  go_on(action_, observation_text(outcome, action_, limits()), failed, out);
}

void code_agent::answer_by_code(const snippet_outcome& outcome, commands& out) {
  auto answer = outcome.result.value_or(value{nullptr, "None"});
  if (auto ok = judge(answer, false, out); !ok) {
    if (!gave_up(ok.error().detail, out))
      go_on(action_, refusal_text(outcome, ok.error().detail, limits()), true, out);
    return;
  }
  end_run(run_end::success, std::move(answer), "", out);
}

void code_agent::take(const tool_replied& e, time_point, commands& out) {
  if (at_ == phase::idle || !e.used)
    return;
  charge(e);
  out.push_back(await_more{});
}

void code_agent::take(const sandbox_failed& e, time_point, commands& out) {
  if (at_ == phase::acting)
    end_run(run_end::error, std::nullopt, "no sandbox: " + to_utf8(e.detail), out);
}

}  // namespace troupe
