#include "runtime/cli/live_view.hpp"

#include "runtime/eval/printable.hpp"

#include <sstream>
#include <string_view>
#include <utility>

namespace troupe::cli {
namespace {

std::string block(std::string_view text) {
  std::string out = "  ";
  for (char c : printable(text)) {
    out += c;
    if (c == '\n')
      out += "  ";
  }
  while (out.ends_with(' ') || out.ends_with('\n'))
    out.pop_back();
  return out + "\n";
}

/// A piece may begin anywhere: what follows its newlines is indented.
std::string indented(std::string_view text) {
  std::string out;
  for (char c : text) {
    out += c;
    if (c == '\n')
      out += "  ";
  }
  return out;
}

std::string dimmed(std::string text, bool colour) {
  return colour ? "\033[2m" + std::move(text) + "\033[0m" : text;
}

}  // namespace

std::string live_view::show(const run_event& e) {
  if (e.depth > 0)
    return managed(e);
  if (e.kind == "reply" || e.kind == "reasoning")
    return piece(e);
  auto end_of_reply = std::exchange(piece_kind_, {}).empty() ? "" : "\n";
  if (e.kind == "reply_again") {
    reply_shown_ = false;
    return end_of_reply + heading("the reply broke off and is begun anew", "1;31");
  }
  auto text = end_of_reply + whole(e, reply_shown_);
  if (e.kind == "observation" || e.kind == "plan")
    reply_shown_ = false;
  return text;
}

std::string live_view::piece(const run_event& e) {
  reply_shown_ = true;
  auto text = printable(string_or(e.payload, "text"));
  auto start = piece_kind_.empty() ? "  " : "";
  if (piece_kind_ != e.kind)
    held_ = piece_kind_.empty() ? "" : "\n";
  text.insert(0, std::exchange(held_, {}));
  auto end = text.find_last_not_of('\n') + 1;
  held_ = text.substr(end);
  text.resize(end);
  piece_kind_ = e.kind;
  text = start + indented(text);
  return e.kind == "reasoning" ? dimmed(std::move(text), colour_) : text;
}

/// Several may speak at once: each says whole things only, under its name.
std::string live_view::managed(const run_event& e) {
  auto text = piece_kind_.empty() ? whole(e, false) : "\n" + whole(e, false);
  if (e.kind == "run_ended")
    text = heading("ended: " + printable(string_or(e.payload, "end")), "1;34");
  if (text.empty() || text == "\n")
    return {};
  piece_kind_.clear();
  std::string margin(std::size_t{2} * e.depth, ' ');
  std::string out;
  std::istringstream lines{margin + "[" + printable(e.agent) + "] " + text};
  for (std::string line; std::getline(lines, line);)
    out += (out.empty() ? "" : margin) + line + "\n";
  return out;
}

std::string live_view::whole(const run_event& e, bool reply_shown) const {
  if (e.kind == "action" && e.payload.contains("calls"))
    return heading("step " + std::to_string(e.payload.value("step", 0)) + ": calls", "1;34");
  if (e.kind == "action")
    return heading("step " + std::to_string(e.payload.value("step", 0))
                     + (reply_shown ? ": runs" : ": code"),
                   "1;34")
           + (reply_shown ? "" : block(string_or(e.payload, "code")));
  if (e.kind == "observation") {
    auto bad = e.payload.value("is_error", false);
    return heading(bad ? "error" : "observation", bad ? "1;31" : "1;32")
           + block(string_or(e.payload, "text"));
  }
  if (e.kind == "plan")
    return heading("plan", "1;36") + (reply_shown_ ? "" : block(string_or(e.payload, "text")));
  if (e.kind == "compaction")
    return heading("the context is full: " + string_or(e.payload, "how") + ", "
                     + std::to_string(e.payload.value("bytes_after", 0ull)) + " bytes instead of "
                     + std::to_string(e.payload.value("bytes_before", 0ull)),
                   "1;33");
  if (e.kind == "tool_requested")
    return heading("tool " + printable(string_or(e.payload, "tool")) + " "
                     + printable(dump_json(e.payload.value("arguments", json::object()))),
                   "35");
  if (e.kind == "model_failed")
    return heading("model call failed", "1;31");
  return {};
}

std::string live_view::heading(std::string_view text, std::string_view code) const {
  std::string line{text};
  return colour_ ? "\033[" + std::string{code} + "m" + line + "\033[0m\n" : line + "\n";
}

}  // namespace troupe::cli
