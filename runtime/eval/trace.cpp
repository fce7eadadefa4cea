#include "runtime/eval/trace.hpp"

#include "runtime/core/text.hpp"
#include "runtime/eval/printable.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {
namespace {

constexpr std::size_t body_indent = 4;
constexpr std::size_t line_bytes = 300;
constexpr unsigned max_levels = 16;  // of managed agents; a damaged journal may say anything

std::string text_of(const json& object, std::string_view key) {
  return string_or(object, key);
}

std::uint64_t count_of(const json& object, std::string_view key) {
  if (object.is_object())
    if (auto it = object.find(key); it != object.end() && it->is_number_integer())
      return it->get<std::uint64_t>();
  return 0;
}

const json& member(const json& object, std::string_view key) {
  static const json none;
  auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() ? *it : none;
}

bool is_true(const json& object, std::string_view key) {
  const auto& x = member(object, key);
  return x.is_boolean() && x.get<bool>();
}

std::string duration_text(double microseconds) {
  if (microseconds < 1e3)
    return fmt::format("{:.0f} us", microseconds);
  return microseconds < 1e6 ? fmt::format("{:.1f} ms", microseconds / 1e3)
                            : fmt::format("{:.2f} s", microseconds / 1e6);
}

/// Columns of the longest prefix that fits, as bytes: one column per code point is near enough.
std::size_t fitting_bytes(std::string_view line, std::size_t columns) {
  std::size_t at = 0;
  for (; at < line.size(); ++at)
    if ((static_cast<unsigned char>(line[at]) & 0xC0) != 0x80 && columns-- == 0)
      break;
  return at;
}

/// The timeline as it grows.
class timeline {
public:
  explicit timeline(const trace_options& o)
    : options_{o}, width_{std::max<std::size_t>(o.width, 40)} {}

  void heading(double seconds, std::string_view kind, const std::string& facts, bool bad = false) {
    auto begin = fmt::format("{:>+9.3f}s  ", seconds);
    auto name = printable_line(kind, 40);
    if (options_.color)
      name = (bad ? "\x1B[1;31m" : "\x1B[1m") + name + "\x1B[0m";
    out_ += begin + name + (facts.empty() ? "" : "  " + printable_line(facts, line_bytes)) + "\n";
  }

  /// Text below the heading, capped and wrapped; `mark` stands before each line.
  void block(std::string_view text, std::string_view mark = "") {
    auto shown =
      printable(options_.full ? std::string{text} : cut_middle(text, options_.block_bytes));
    for (std::string_view rest = trim_lines(shown); !rest.empty();) {
      auto end = rest.find('\n');
      wrap(rest.substr(0, end), mark);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }

  /// Another timeline, within this one.
  void insert(std::string_view lines) {
    for (auto rest = lines; !rest.empty();) {
      auto end = std::min(rest.find('\n'), rest.size() - 1);
      out_ += "  | " + std::string{rest.substr(0, end)} + "\n";
      rest.remove_prefix(end + 1);
    }
  }

  std::string finish() { return std::move(out_); }

private:
  /// Without blank lines at both ends; the first line keeps its indentation.
  static std::string_view trim_lines(std::string_view text) {
    auto first = text.find_first_not_of(" \t\n");
    if (first == std::string_view::npos)
      return {};
    auto begin = text.rfind('\n', first);
    text.remove_prefix(begin == std::string_view::npos ? 0 : begin + 1);
    return text.substr(0, text.find_last_not_of(" \t\n") + 1);
  }

  void wrap(std::string_view line, std::string_view mark) {
    do {
      auto n = fitting_bytes(line, width_ - body_indent - 2);
      if (n < line.size())
        if (auto space = line.rfind(' ', n); space != std::string_view::npos && space > n / 2)
          n = space + 1;
      auto piece = line.substr(0, n);
      out_ += std::string(piece.empty() && mark.empty() ? 0 : body_indent, ' ');
      out_ += fmt::format("{}{}\n", mark, piece);
      line.remove_prefix(n);
    } while (!line.empty());
  }

  trace_options options_;
  std::size_t width_;
  std::string out_;
};

/// One event about to be shown; `next` helps to leave out what comes again.
struct shown_event {
  const journal_event& event;
  json payload;
  const json* next_action = nullptr;  ///< payload of the action that follows, if one does
  double at = 0;                      ///< seconds since the first event
};

void show_started(timeline& t, const shown_event& e) {
  const auto& history = member(e.payload, "history");
  auto facts = text_of(e.payload, "sample_id");
  if (history.is_array() && !history.empty())
    facts += fmt::format("{}after {} earlier messages", facts.empty() ? "" : ", ", history.size());
  const auto& images = member(e.payload, "images");
  if (images.is_array() && !images.empty())
    facts += fmt::format("{}{} image{}", facts.empty() ? "" : ", ", images.size(),
                         images.size() == 1 ? "" : "s");
  t.heading(e.at, e.event.kind, facts);
  t.block(text_of(e.payload, "task"));
}

void show_plan(timeline& t, const shown_event& e) {
  t.heading(e.at, e.event.kind,
            fmt::format("{}from step {} on, {} left",
                        is_true(e.payload, "update") ? "revised, " : "",
                        count_of(e.payload, "step"), count_of(e.payload, "remaining_steps")));
  t.block(text_of(e.payload, "text"));
}

void show_compaction(timeline& t, const shown_event& e) {
  t.heading(e.at, e.event.kind,
            fmt::format("step {}, {}: {} messages, {} bytes instead of {}",
                        count_of(e.payload, "step"), text_of(e.payload, "how"),
                        count_of(e.payload, "messages"), count_of(e.payload, "bytes_after"),
                        count_of(e.payload, "bytes_before")));
  t.block(text_of(e.payload, "text"));
}

/// "step 3: search, read_page", for the calls of a turn that were carried out or not.
std::string calls_text(const json& calls) {
  std::string out;
  for (const auto& call : calls)
    out += (out.empty() ? ": " : ", ") + text_of(call, "tool")
           + (call.contains("refused") ? " (refused)" : "");
  return out;
}

/// The reply's text with the code that the next event shows left out.
std::string without_code(std::string text, const json* action) {
  auto code = action == nullptr ? std::string{} : text_of(*action, "code");
  auto at = code.empty() ? std::string::npos : text.find(code);
  return at == std::string::npos ? text : text.replace(at, code.size(), "[the code below]");
}

void show_reply(timeline& t, const shown_event& e) {
  const auto& reply = e.payload.contains("reply") ? e.payload["reply"] : e.payload;
  const auto& usage = member(reply, "usage");
  auto facts = fmt::format("{}, {} tokens in, {} out", text_of(reply, "finish_reason"),
                           count_of(usage, "input"), count_of(usage, "output"));
  if (auto ms = count_of(reply, "latency_ms"); ms > 0)
    facts += ", " + duration_text(static_cast<double>(ms) * 1e3);
  if (auto n = count_of(reply, "attempts"); n > 1)
    facts += fmt::format(", {} attempts", n);
  t.heading(e.at, e.event.kind, facts);
  t.block(without_code(text_of(reply, "text"), e.next_action));
  // What is called stands with its arguments below.
  const auto& calls = member(reply, "tool_calls");
  if (calls.is_array() && e.next_action == nullptr)
    for (const auto& call : calls)
      t.block(text_of(call, "name") + "(" + text_of(call, "arguments") + ")");
}

void show_snippet(timeline& t, const shown_event& e, bool full) {
  const auto& usage = member(e.payload, "usage");
  auto end = text_of(e.payload, "end");
  auto facts = fmt::format("{}, wall {}, CPU {}", end,
                           duration_text(static_cast<double>(count_of(usage, "wall_us"))),
                           duration_text(static_cast<double>(count_of(usage, "cpu_us"))));
  const auto& raised = member(e.payload, "error");
  if (raised.is_object())
    facts += fmt::format("; {}: {}", text_of(raised, "type"), text_of(raised, "message"));
  if (auto reason = text_of(e.payload, "reason"); !reason.empty())
    facts += "; " + reason;
  t.heading(e.at, e.event.kind, facts, end != "ok");
  if (!full)
    return;  // the observation that follows says it again, as the model read it
  t.block(text_of(e.payload, "logs"), "| ");
  t.block(text_of(member(e.payload, "result"), "text"), "= ");
  t.block(text_of(raised, "traceback"), "! ");
}

void show_answer(timeline& t, const shown_event& e) {
  auto refused = member(e.payload, "accepted").is_boolean() && !is_true(e.payload, "accepted");
  auto facts = std::string{refused ? "refused: " + text_of(e.payload, "why") : "accepted"};
  if (is_true(e.payload, "forced"))
    facts += ", forced";
  t.heading(e.at, e.event.kind, facts, refused);
  t.block(text_of(e.payload, "text"));
}

void show_tool_request(timeline& t, const shown_event& e) {
  const auto& arguments = member(e.payload, "arguments");
  t.heading(e.at, e.event.kind,
            fmt::format("{} {}", count_of(e.payload, "call"), text_of(e.payload, "tool")));
  t.block(arguments.is_string() ? arguments.get<std::string>() : dump_json(arguments));
}

void show_tool_reply(timeline& t, const shown_event& e) {
  const auto& failed = member(e.payload, "error");
  auto facts = fmt::format("{}", count_of(e.payload, "call"));
  if (failed.is_object())
    facts += fmt::format(" {}: {}", text_of(failed, "kind"), text_of(failed, "message"));
  t.heading(e.at, e.event.kind, facts, failed.is_object());
  if (e.payload.contains("value"))
    t.block(dump_json(e.payload["value"]));
}

void show_connection(timeline& t, const shown_event& e) {
  auto address = text_of(e.payload, "address");
  auto facts = fmt::format("{} {}:{}{}, {} bytes up, {} down", text_of(e.payload, "verdict"),
                           text_of(e.payload, "host"), count_of(e.payload, "port"),
                           address.empty() ? "" : " (" + address + ")",
                           count_of(e.payload, "bytes_up"), count_of(e.payload, "bytes_down"));
  t.heading(e.at, e.event.kind, facts, text_of(e.payload, "verdict") != "allowed");
  t.block(text_of(e.payload, "reason"));
}

void show_ended(timeline& t, const shown_event& e) {
  auto end = text_of(e.payload, "end");
  auto facts = fmt::format("{} after {} turns", end, count_of(e.payload, "turns"));
  if (auto why = text_of(e.payload, "error"); !why.empty())
    facts += ": " + why;
  t.heading(e.at, e.event.kind, facts, end != "success");
  t.block(text_of(e.payload, "answer"));
}

void show(timeline& t, const shown_event& e, bool full) {
  const auto& kind = e.event.kind;
  if (!e.payload.is_object()) {
    t.heading(e.at, kind, "");
    return t.block(e.event.payload);
  }
  if (kind == "run_started")
    return show_started(t, e);
  if (kind == "model_requested")
    return t.heading(
      e.at, kind,
      fmt::format("turn {}, {} bytes", count_of(e.payload, "turn"), count_of(e.payload, "bytes")));
  if (kind == "model_replied")
    return show_reply(t, e);
  if (kind == "model_failed")
    return t.heading(e.at, kind, text_of(e.payload, "kind") + ": " + text_of(e.payload, "detail"),
                     true);
  if (kind == "action") {
    const auto& calls = member(e.payload, "calls");
    t.heading(e.at, kind,
              fmt::format("step {}{}", count_of(e.payload, "step"),
                          calls.is_array() ? calls_text(calls) : ""));
    return t.block(text_of(e.payload, "code"), "> ");
  }
  if (kind == "snippet_done")
    return show_snippet(t, e, full);
  if (kind == "observation") {
    t.heading(e.at, kind, fmt::format("step {}", count_of(e.payload, "step")),
              is_true(e.payload, "is_error"));
    return t.block(text_of(e.payload, "text"));
  }
  if (kind == "plan")
    return show_plan(t, e);
  if (kind == "compaction")
    return show_compaction(t, e);
  if (kind == "final_answer")
    return show_answer(t, e);
  if (kind == "tool_requested")
    return show_tool_request(t, e);
  if (kind == "tool_replied")
    return show_tool_reply(t, e);
  if (kind == "connection")
    return show_connection(t, e);
  if (kind == "child_started")
    return t.heading(
      e.at, kind,
      fmt::format("{}, run {}", text_of(e.payload, "agent"), count_of(e.payload, "run")));
  if (kind == "hook")
    return t.heading(e.at, kind,
                     fmt::format("{} {} at {}: {}", text_of(e.payload, "hook"),
                                 text_of(e.payload, "did"), text_of(e.payload, "at"),
                                 text_of(e.payload, "why")),
                     text_of(e.payload, "did") != "changed");
  if (kind == "letter") {
    t.heading(e.at, kind,
              fmt::format("{} to {}: {}", text_of(e.payload, "from"), text_of(e.payload, "to"),
                          text_of(e.payload, "kind")));
    return t.block(text_of(e.payload, "text"));
  }
  if (kind == "sandbox_failed" || kind == "cancel_requested")
    return t.heading(e.at, kind, text_of(e.payload, "detail") + text_of(e.payload, "reason"), true);
  if (kind == "run_ended")
    return show_ended(t, e);
  t.heading(e.at, kind, "");
  if (!e.payload.empty())
    t.block(dump_json(e.payload));
}

json payload_of(const journal_event& e) {
  auto parsed = parse_json(e.payload, {.max_bytes = 256u << 20, .max_depth = 128});
  return parsed ? std::move(*parsed) : json{};
}

void show_result(timeline& t, const run_result& r, double at) {
  auto score = r.score ? fmt::format("score {:.3g}", *r.score) : std::string{"unscored"};
  t.heading(at, "result",
            fmt::format("{}, sample {}, epoch {}: {}{}", r.end, r.sample_id, r.epoch, score,
                        r.score_note.empty() ? "" : " (" + r.score_note + ")"));
}

/// What all the timelines of one trace share.
struct trace_of {
  const trace_options& options;
  const events_of_run& children;
  std::int64_t begin = 0;

  [[nodiscard]] std::vector<journal_event> events_below(const journal_event& e, const json& payload,
                                                        unsigned level) const {
    auto run = e.kind == "child_started" ? count_of(payload, "run") : 0;
    return run != 0 && children && level < max_levels ? children(run_id{run})
                                                      : std::vector<journal_event>{};
  }
};

std::string render(const std::vector<journal_event>& events, const trace_of& trace,
                   unsigned level) {
  timeline t{trace.options};
  std::vector<shown_event> shown;
  shown.reserve(events.size());
  for (const auto& e : events)
    shown.push_back({e, payload_of(e), nullptr, static_cast<double>(e.at - trace.begin) / 1e6});
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (i + 1 < shown.size() && shown[i + 1].event.kind == "action" && !trace.options.full)
      shown[i].next_action = &shown[i + 1].payload;
    show(t, shown[i], trace.options.full);
    t.insert(render(trace.events_below(shown[i].event, shown[i].payload, level), trace, level + 1));
  }
  return t.finish();
}

json listed(const std::vector<journal_event>& events, const trace_of& trace, unsigned level) {
  auto out = json::array();
  for (const auto& e : events) {
    auto payload = payload_of(e);
    auto below = trace.events_below(e, payload, level);
    out.push_back({{"seq", e.seq},
                   {"at_us", e.at},
                   {"kind", e.kind},
                   {"payload", payload.is_null() ? json(to_utf8(e.payload)) : std::move(payload)}});
    if (!below.empty())
      out.back()["events"] = listed(below, trace, level + 1);
  }
  return out;
}

}  // namespace

std::string render_trace(const std::vector<journal_event>& events,
                         const std::optional<run_result>& ended, const trace_options& options,
                         const events_of_run& children) {
  auto begin = events.empty() ? 0 : events.front().at;
  auto out = render(events, {options, children, begin}, 0);
  if (!ended)
    return out;
  timeline t{options};
  show_result(t, *ended, events.empty() ? 0 : static_cast<double>(events.back().at - begin) / 1e6);
  return out + t.finish();
}

json trace_json(const std::vector<journal_event>& events, const events_of_run& children) {
  return listed(events, {{}, children, 0}, 0);
}

}  // namespace troupe
