#include "runtime/agent/observation.hpp"

#include "runtime/core/text.hpp"

namespace troupe {
namespace {

constexpr std::string_view retry_nudge =
  "Find out why before you go on, and do not run the same code again: change it.";

std::string_view without_newlines(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r'))
    text.remove_suffix(1);
  return text;
}

void add_logs(std::string& out, const snippet_outcome& outcome, const observation_limits& limits) {
  auto logs = without_newlines(outcome.logs);
  if (logs.empty() && outcome.logs_dropped == 0)
    return;
  out += "Execution logs:\n";
  out += cut_middle(logs, limits.log_bytes);
  if (outcome.logs_dropped > 0)
    out += "\n[" + std::to_string(outcome.logs_dropped) + " more bytes of output were dropped]";
  out += '\n';
}

/// Line `number` (from 1) of the code, without its indentation; empty when there is none.
std::string_view line_of(std::string_view code, std::uint32_t number) {
  if (number == 0)
    return {};
  std::size_t at = 0;
  for (; number > 1; --number) {
    at = code.find('\n', at);
    if (at == std::string_view::npos)
      return {};
    ++at;
  }
  return trim(code.substr(at, code.find('\n', at) - at));
}

/// A traceback tells more than the line when there is more than one frame, or a caret.
bool worth_showing(const snippet_error& e) {
  auto first = e.traceback.find("File \"");
  return e.type.ends_with("SyntaxError") || e.type == "IndentationError" || e.type == "TabError"
         || (first != std::string::npos
             && e.traceback.find("File \"", first + 1) != std::string::npos);
}

std::string raised_text(const snippet_error& e, std::string_view code, std::size_t max_bytes) {
  auto out = e.type.empty() ? e.message : e.message.empty() ? e.type : e.type + ": " + e.message;
  out = cut_middle(out, max_bytes);
  if (auto line = line_of(code, e.line); !line.empty())
    out += "\nAt line " + std::to_string(e.line) + ": " + cut_middle(line, max_bytes);
  if (worth_showing(e))
    out += "\n" + cut_middle(without_newlines(e.traceback), max_bytes);
  return out;
}

/// What ended the code, in the model's terms.
std::string_view why_ended(snippet_end end) {
  switch (end) {
  case snippet_end::soft_timeout:
    return "The code ran into its time limit and was interrupted";
  case snippet_end::hard_timeout:
    return "The code ran into its time limit and could not be interrupted, so it was killed";
  case snippet_end::output_limit:
    return "The code was killed because it wrote more output than is allowed";
  case snippet_end::protocol:
    return "The session was closed because what it sent could not be understood";
  case snippet_end::memory:
    return "The code was killed because it used more memory than is allowed";
  case snippet_end::crashed:
    return "The Python process crashed";
  case snippet_end::exited:
    return "The Python process ended itself; do not call exit functions, the session must go on";
  case snippet_end::killed:
    return "The Python process was killed from outside";
  default:
    return "The code failed";
  }
}

std::string ended_text(const snippet_outcome& outcome, std::string_view code,
                       std::size_t max_bytes) {
  std::string out{why_ended(outcome.end)};
  if (auto reason = trim(outcome.reason); !reason.empty())
    out += " (" + cut_middle(reason, max_bytes) + ")";
  out += '.';
  if (outcome.error)
    out += "\n" + raised_text(*outcome.error, code, max_bytes);
  if (outcome.restored)
    out += "\nYour session is as it was before this code: it keeps its variables, and nothing that "
           "the code assigned.";
  else if (survives(outcome.end))
    out += "\nThe variables of your session are kept.";
  else
    out += "\nAll variables, functions and imports of your session are lost. Your next code starts "
           "in a fresh one: define again what you need.";
  return out;
}

void add_error(std::string& out, std::string_view what) {
  out += "Error:\n";
  out += what;
  out += '\n';
  out += retry_nudge;
}

}  // namespace

std::string observation_text(const snippet_outcome& outcome, std::string_view code,
                             const observation_limits& limits) {
  std::string out = "Observation:\n";
  add_logs(out, outcome, limits);
  if (outcome.end == snippet_end::raised && outcome.error) {
    add_error(out, raised_text(*outcome.error, code, limits.error_bytes));
  } else if (outcome.end != snippet_end::ok) {
    add_error(out, ended_text(outcome, code, limits.error_bytes));
  } else if (outcome.result) {
    out += "Last output from code snippet:\n";
    out += cut_middle(outcome.result->text, limits.value_bytes);
  } else if (outcome.logs.empty() && outcome.logs_dropped == 0) {
    out += "The code ran without error and printed nothing.";
  }
  return cut_middle(without_newlines(out), limits.all_bytes);
}

std::string refusal_text(const snippet_outcome& outcome, std::string_view why,
                         const observation_limits& limits) {
  std::string out = "Observation:\n";
  add_logs(out, outcome, limits);
  return out + refusal_text(why, limits.error_bytes);
}

std::string refusal_text(std::string_view why, std::size_t max_bytes) {
  return "Error:\nYour final answer was not accepted: " + cut_middle(why, max_bytes)
         + "\nThe task goes on. Mend the answer, then call final_answer again.";
}

std::string plain_text(const json& value) {
  if (!value.is_string())
    return dump_json(value);
  if (is_utf8(value.get_ref<const std::string&>()))
    return value.get<std::string>();
  // As the journal writes it, so that a later fold reads the same.
  return json::parse(dump_json(value)).get<std::string>();
}

std::string tool_text(const json& value, std::size_t max_bytes) {
  auto text = plain_text(value);
  return text.empty() ? "(an empty text)" : cut_middle(text, max_bytes);
}

std::string call_error_text(const error& why, std::string_view tool, std::string_view arguments,
                            std::size_t max_bytes) {
  constexpr std::size_t shown_arguments = 400;
  std::string out = "Error:\n" + cut_middle(to_utf8(to_string(why)), max_bytes) + "\nThe call was ";
  out += tool;
  out += '(';
  out += cut_middle(arguments, shown_arguments);
  out += ").\nDo not make the same call again: change it, or do something else.";
  return out;
}

std::string error_text(std::string_view what) {
  return "Error:\n" + std::string{without_newlines(what)};
}

}  // namespace troupe
