#pragma once
// Server-sent events off the wire, piece by piece: no socket, no clock.

#include "runtime/core/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct sse_event {
  std::string name{};  ///< of its "event" field; empty when it has none
  std::string data{};  ///< its "data" lines, joined by newlines

  bool operator==(const sse_event&) const = default;
};

/// Splits bytes into events wherever the pieces end, in the middle of a UTF-8 sequence too. Lines
/// end in LF, CR or CRLF; a byte order mark at the start, comments, "id", "retry" and events
/// without data are read over. Source  HTML Living Standard, section 9.2.6 "Interpreting an event
/// stream".
class sse_splitter {
public:
  /// An event's name and data together have at most `max_event_bytes`, and so has a line.
  explicit sse_splitter(std::size_t max_event_bytes) : max_{max_event_bytes} {}

  /// Appends the events that `bytes` complete to `out`.
  /// Errors  over_budget: an event or line that is too long; nothing more may be fed.
  [[nodiscard]] result<void> feed(std::string_view bytes, std::vector<sse_event>& out);

  /// The stream has ended. Servers that leave out the last blank line, or even the last newline,
  /// are read as if they had not: the standard would drop that event.
  [[nodiscard]] result<void> feed_end(std::vector<sse_event>& out);

private:
  [[nodiscard]] result<void> take_line(std::string_view line, std::vector<sse_event>& out);
  void dispatch(std::vector<sse_event>& out);

  std::size_t max_;
  std::string line_;  ///< the beginning of a line whose end has not come
  sse_event event_;
  bool has_data_ = false;
  bool at_start_ = true;  ///< no line has been taken: a byte order mark may stand here
  bool after_cr_ = false;
};

}  // namespace troupe
