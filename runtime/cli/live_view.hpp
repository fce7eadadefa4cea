#pragma once
// How a run looks while it goes on: what the model writes, code, observations.

#include "runtime/agent/live.hpp"

#include <string>

namespace troupe::cli {

/// Turns the events of one run into text for a terminal, with or without colour. Control characters
/// of untrusted text are taken out. Value.
class live_view {
public:
  explicit live_view(bool colour) : colour_{colour} {}

  /// What to print for the next event; empty for what is not shown. A reply that came in pieces
  /// is shown as it came, and its code is not shown again.
  [[nodiscard]] std::string show(const run_event& e);

private:
  [[nodiscard]] std::string piece(const run_event& e);
  [[nodiscard]] std::string managed(const run_event& e);
  [[nodiscard]] std::string whole(const run_event& e, bool reply_shown) const;
  [[nodiscard]] std::string heading(std::string_view text, std::string_view code) const;

  bool colour_;
  std::string piece_kind_;  ///< of the piece of a reply that was shown last; empty: none was
  std::string held_;        ///< newlines at its end, which count only if more of it comes
  bool reply_shown_ = false;
};

}  // namespace troupe::cli
