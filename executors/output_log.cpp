#include "executors/output_log.hpp"

#include "runtime/core/text.hpp"

#include <algorithm>

namespace troupe {

void output_log::append(std::string_view bytes) {
  total_ += bytes.size();
  auto room = std::min(bytes.size(), head_limit_ - head_.size());
  head_ += bytes.substr(0, room);
  bytes.remove_prefix(room);
  if (bytes.size() > tail_limit_)
    bytes.remove_prefix(bytes.size() - tail_limit_);
  tail_ += bytes;
  if (tail_.size() > 2 * tail_limit_)
    tail_.erase(0, tail_.size() - tail_limit_);
}

std::size_t output_log::dropped() const noexcept {
  return total_ - head_.size() - std::min(tail_.size(), tail_limit_);
}

std::string output_log::text() const {
  auto cut = dropped();
  if (cut == 0)
    return to_utf8(head_ + tail_);
  auto head = utf8_prefix(head_, head_.size());
  std::string_view tail = tail_;
  tail.remove_prefix(tail.size() - std::min(tail.size(), tail_limit_));
  while (!tail.empty() && (static_cast<unsigned char>(tail.front()) & 0xC0) == 0x80)
    tail.remove_prefix(1);  // the cut fell into a character
  return to_utf8(head) + "\n... [" + std::to_string(cut) + " bytes cut] ...\n" + to_utf8(tail);
}

}  // namespace troupe
