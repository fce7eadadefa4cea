#pragma once
// What was asked of a server and is seen to here, because not every server does it: stop sequences
// and at most one tool call.

#include "runtime/model/chat.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Where the first stop sequence in `text` begins, or npos. Empty sequences are none.
[[nodiscard]] std::size_t find_stop(std::string_view text, const std::vector<std::string>& stops);

/// Ends the text at the first stop sequence, as a server would have: then the finish reason is
/// "stop", and there are no calls, which come after the text. Keeps one call where parallel calls
/// were forbidden (llama.cpp does not heed that).
void enforce(const model_settings& settings, model_reply& reply);

/// Lets text through up to the first stop sequence, wherever the pieces end. Value.
class stop_filter {
public:
  explicit stop_filter(std::vector<std::string> stops) : stops_{std::move(stops)} {}

  /// What of the text so far may be shown and was not yet: what may be the beginning of a stop
  /// sequence is held back. "" once a sequence was found.
  [[nodiscard]] std::string feed(std::string_view piece);

  /// The text has ended: what was held back, if it is no stop sequence.
  [[nodiscard]] std::string rest();

  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace troupe
