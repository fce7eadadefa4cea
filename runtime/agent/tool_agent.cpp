#include "runtime/agent/tool_agent.hpp"

#include "runtime/agent/code_parser.hpp"
#include "runtime/agent/observation.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe {
namespace {

constexpr std::size_t max_id_bytes = 512;
constexpr std::size_t least_result_bytes = 2'000;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
         || c == '-';
}

/// The name as it goes back: a name that a model made up may be one that providers refuse.
/// Source  OpenAI API reference, "Create chat completion": letters, digits, _ and -, at most 64.
std::string wire_name(std::string_view name) {
  std::string out{name.substr(0, 64)};
  for (auto& c : out)
    c = is_name_char(c) ? c : '_';
  return out.empty() ? "unnamed" : out;
}

/// The arguments as they go back: some servers read them again, and must find an object.
std::string wire_arguments(const wanted_call& call) {
  if (!call.error.empty() || !call.arguments.is_object())
    return "{}";
  return trim(call.shown).starts_with('{') ? call.shown : dump_json(call.arguments);
}

/// The model's id, told apart from those of the calls before it in the same reply.
std::string wire_id(std::string_view given, const std::vector<tool_call_message>& before) {
  std::string base{given.empty() ? "call_" + std::to_string(before.size())
                                 : to_utf8(utf8_prefix(given, max_id_bytes))};
  auto taken = [&](const std::string& id) {
    return std::any_of(before.begin(), before.end(), [&](auto& c) { return c.id == id; });
  };
  auto id = base;
  for (int n = 2; taken(id); ++n)
    id = base + "_" + std::to_string(n);
  return id;
}

/// `sound`: it may be carried out, so its arguments are read.
wanted_call native_call(const tool_call_message& call, bool sound) {
  constexpr std::size_t shown_bytes = 400;
  wanted_call out;
  out.tool = to_utf8(utf8_prefix(call.name, max_tool_name_bytes));
  out.shown = to_utf8(sound ? call.arguments : cut_middle(call.arguments, shown_bytes));
  auto decoded = sound ? decoded_arguments(out.shown) : json{};
  if (decoded)
    out.arguments = *std::move(decoded);
  else
    out.error = decoded.error().detail;
  return out;
}

/// Without think blocks; otherwise as it came, since a provider's own part of a reply goes back
/// only beside the very same text.
std::string kept_text(const std::string& text, std::size_t max_bytes) {
  auto visible = without_thoughts(text);
  return cut_middle(visible == trim(text) ? text : visible, max_bytes);
}

/// What the model said itself, up to a line in which it makes up a result.
std::string spoken(std::string text) {
  constexpr std::string_view made_up = "Observation:";
  for (auto at = text.find(made_up); at != std::string::npos; at = text.find(made_up, at + 1))
    if (at == 0 || text[at - 1] == '\n') {
      text.resize(at);
      break;
    }
  return text;
}

std::string action_of(std::string_view tool, std::string_view arguments) {
  return std::string{tool} + "(" + std::string{arguments} + ")\n";
}

constexpr std::string_view cut_short =
  "your reply reached its greatest length before the call ended; write less, or do it in several "
  "turns";

}  // namespace

tool_agent::tool_agent(std::shared_ptr<const agent_definition> definition, message_encoder encode,
                       transcript start, run_id run)
  : react_loop{std::move(definition), encode, std::move(start), run} {}

std::vector<agent_command> tool_agent::on(const agent_event& event, time_point now) {
  commands out;
  if (!finished())
    std::visit([&](const auto& e) { take(e, now, out); }, event);
  return out;
}

void tool_agent::take(const model_replied& e, time_point, commands& out) {
  if (!is_for_kind(e.reply, out))
    return;
  forced_ = at_ == phase::answering;
  by_text_ = e.reply.tool_calls.empty();
  if (forced_)
    answer(e.reply, out);
  else
    act(e.reply, out);
}

void tool_agent::act(const model_reply& reply, commands& out) {
  auto parsed = read(reply);
  remember(reply, parsed.calls);
  if (!parsed.calls.empty())
    return begin(std::move(parsed.calls), out);
  auto text = to_utf8(reply.text);
  auto why = reply.finish_reason == "length" ? cut_short : std::string_view{parsed.error};
  go_on(text, error_text(no_call_error(text, why, options().calls, *ending_tool({}))), true, out);
}

/// A model that gives the forced answer by a call, as it has learned to, has answered too.
void tool_agent::answer(const model_reply& reply, commands& out) {
  auto parsed = read(reply);
  auto& calls = parsed.calls;
  if (calls.size() != 1 || !calls[0].error.empty() || ending_tool(calls[0].tool) == nullptr)
    return answer_by_text(reply, out);
  begin(std::move(calls), out);
}

parsed_calls tool_agent::read(const model_reply& reply) const {
  auto out = by_text_ ? read_text(reply.text) : parsed_calls{};
  auto why = why_too_much(reply.tool_calls, out.calls.size());
  for (auto& call : reply.tool_calls)
    if (out.calls.empty() || why.empty())
      out.calls.push_back(native_call(call, why.empty()));
  if (!why.empty()) {
    out.calls.resize(1);
    out.calls.front().error = why;
  }
  return out;
}

parsed_calls tool_agent::read_text(std::string_view text) const {
  auto limit = options().max_code_bytes;
  if (text.size() > limit)
    return {{},
            "it is " + std::to_string(text.size()) + " bytes long, and at most "
              + std::to_string(limit) + " are read"};
  return calls_in_text(spoken(without_thoughts(to_utf8(text))));
}

/// Of too many calls, or too much in them, none is carried out; the first goes back, to be answered
/// with this reason. Empty: all is well.
std::string tool_agent::why_too_much(const std::vector<tool_call_message>& native,
                                     std::size_t written) const {
  auto& o = options();
  std::size_t bytes = 0;
  for (auto& call : native)
    bytes += call.arguments.size();
  if (bytes > o.max_code_bytes)
    return "the arguments of your calls are " + std::to_string(bytes) + " bytes long, and at most "
           + std::to_string(o.max_code_bytes) + " are taken in a turn";
  if (native.size() + written > o.max_calls)
    return "your reply made " + std::to_string(native.size() + written) + " calls, more than the "
           + std::to_string(o.max_calls) + " that a turn may have; none of them was carried out";
  return {};
}

void tool_agent::remember(const model_reply& reply, const std::vector<wanted_call>& calls) {
  auto& o = options();
  chat_message message;
  message.from = role::assistant;
  message.content = kept_text(to_utf8(reply.text), o.max_reply_bytes);
  if (by_text_ && !calls.empty())
    message.content = spoken(std::move(message.content));
  // What is too long to be taken would go back within it.
  if (reply.kept.size() <= o.max_reply_bytes + o.max_code_bytes)
    message.kept = reply.kept;
  for (std::size_t i = 0; i < calls.size() && !by_text_; ++i)
    message.tool_calls.push_back({wire_id(reply.tool_calls[i].id, message.tool_calls),
                                  wire_name(calls[i].tool), wire_arguments(calls[i]),
                                  reply.tool_calls[i].kept});
  if (message.content.empty() && message.tool_calls.empty())
    message.content = "(empty reply)";
  memory_.append(message);
  calls_.clear();
  for (auto& call : message.tool_calls)
    calls_.push_back({.wire_id = std::move(call.id)});
}

void tool_agent::begin(std::vector<wanted_call> wanted, commands& out) {
  calls_.resize(wanted.size());
  auto listed = json::array();
  commands calls;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    listed.push_back(open(calls_[i], wanted[i], wanted.size() == 1, calls));
  at_ = phase::acting;
  out.push_back(note{
    "action", {{"step", step()}, {"source", by_text_ ? "text" : "native"}, {"calls", listed}}});
  if (calls.empty())
    return end_turn(out);
  std::move(calls.begin(), calls.end(), std::back_inserter(out));
}

/// Sends a call out, or refuses it. Returns what the note says of it.
json tool_agent::open(open_call& call, wanted_call& wanted, bool alone, commands& calls) {
  call.tool = std::move(wanted.tool);
  call.arguments = std::move(wanted.shown);
  call.ends_run = ending_tool(call.tool) != nullptr;
  json entry{{"tool", call.tool}};
  if (!call.wire_id.empty())
    entry["id"] = call.wire_id;
  if (auto why = why_refused(call, wanted.error, alone); !why.detail.empty()) {
    entry["refused"] = why.detail;
    refuse(call, why);
    return entry;
  }
  call.id = call_id{++last_call_};
  call.out = true;
  calls.emplace_back(call_tool{call.id, call.tool, std::move(wanted.arguments)});
  entry["call"] = call.id.value;
  return entry;
}

/// Without a detail: it is not.
error tool_agent::why_refused(const open_call& call, const std::string& broken, bool alone) const {
  if (!broken.empty())
    return {errc::invalid_argument, broken};
  if (call.ends_run && !alone)
    return {errc::denied, call.tool
                            + " was called beside other calls, and was not carried out: read their "
                              "results first, then call it alone"};
  return {};
}

void tool_agent::take(const tool_replied& e, time_point, commands& out) {
  auto call =
    std::find_if(calls_.begin(), calls_.end(), [&](auto& c) { return c.out && c.id == e.call; });
  if (call == calls_.end())
    return;
  call->out = false;
  charge(e);
  if (forced_ && !e.outcome)
    return no_forced_answer(to_utf8(e.outcome.error().detail), out);
  settle(*call, e.outcome);
  if (std::any_of(calls_.begin(), calls_.end(), [](auto& c) { return c.out; }))
    out.emplace_back(await_more{});
  else
    end_turn(out);
}

void tool_agent::settle(open_call& call, const result<json>& outcome) {
  if (!outcome)
    return refuse(call, outcome.error());
  // All results of a turn together are one observation, and bounded like one.
  auto most = limits();
  auto share = std::max(least_result_bytes, most.log_bytes / calls_.size());
  call.text = tool_text(*outcome, std::min(most.value_bytes, share));
  if (call.ends_run)
    call.answer = value{to_tagged(*outcome), plain_text(*outcome)};
}

void tool_agent::refuse(open_call& call, const error& why) const {
  call.failed = true;
  call.text = call_error_text(why, call.tool, call.arguments, limits().error_bytes);
}

void tool_agent::end_turn(commands& out) {
  if (auto& first = calls_.front(); first.answer) {
    answer_by_call(first, out);
    if (finished())
      return;
  }
  std::string action;
  for (auto& call : calls_)
    action += action_of(call.tool, call.arguments);
  auto failed = std::any_of(calls_.begin(), calls_.end(), [](auto& c) { return c.failed; });
  tell_results(observe(action, observation(), failed, out));
  calls_ = {};
  go_on(out);
}

void tool_agent::answer_by_call(open_call& call, commands& out) {
  if (forced_)
    return answer_forced(*std::move(call.answer), out);
  if (auto ok = judge(*call.answer, false, out); !ok) {
    if (gave_up(ok.error().detail, out))
      return;
    call.failed = true;
    call.text = refusal_text(ok.error().detail, options().max_error_bytes);
    return;
  }
  end_run(run_end::success, std::move(call.answer), "", out);
}

/// In the order in which the calls were made, whenever they were answered.
void tool_agent::tell_results(std::string_view nudge) {
  if (by_text_)
    return say(role::user, "Observation:\n" + observation().append(nudge));
  for (auto& call : calls_) {
    if (&call == &calls_.back())
      call.text += nudge;
    memory_.append({.from = role::tool,
                    .content = std::move(call.text),
                    .tool_call_id = std::move(call.wire_id),
                    .failed = call.failed});
  }
}

std::string tool_agent::observation() const {
  if (calls_.size() == 1)
    return calls_.front().text;
  std::string out;
  for (auto& call : calls_)
    out += (out.empty() ? "" : "\n\n") + call.tool + ":\n" + call.text;
  return out;
}

/// The tool of that name if it ends the run; for no name the first that does.
const tool_spec* tool_agent::ending_tool(std::string_view name) const {
  for (auto& tool : options().tools)
    if (tool.ends_run && (name.empty() || tool.name == name))
      return &tool;
  return nullptr;
}

}  // namespace troupe
