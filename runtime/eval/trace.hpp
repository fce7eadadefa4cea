#pragma once
// One run's timeline, from its journal: for people, and as JSON.

#include "runtime/journal/journal.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct trace_options {
  bool full = false;                ///< no caps; snippets' own logs and results are shown too
  std::size_t width = 100;          ///< columns to wrap at; at least 40 is used
  std::size_t block_bytes = 2'000;  ///< of one text block; more is cut in the middle
  bool color = false;
};

/// The events of another run of the same journal; none for one that is not there.
using events_of_run = std::function<std::vector<journal_event>(run_id)>;

/// Each event as "+1.234s  kind  facts" with its text indented below. Kinds are those of
/// runtime/agent/events.hpp, the agent's notes and the tools' events; of any other the payload is
/// shown as compact JSON, and so is a payload of another shape than expected. All text that the
/// model, a tool or a sandbox wrote is made safe for a terminal.
/// `ended` is the run's result, if it has one. The runs of managed agents stand where they began,
/// with a bar before them, on the same clock; without `children` only their numbers do.
[[nodiscard]] std::string render_trace(const std::vector<journal_event>& events,
                                       const std::optional<run_result>& ended,
                                       const trace_options& options = {},
                                       const events_of_run& children = {});

/// An array of {seq, at_us, kind, payload}; a payload that is not JSON is kept as a text. Where a
/// managed agent's run began, "events" is the same of that run.
[[nodiscard]] json trace_json(const std::vector<journal_event>& events,
                              const events_of_run& children = {});

}  // namespace troupe
