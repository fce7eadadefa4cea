#include "runtime/model/transcript.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace troupe {

std::string_view to_string(role r) noexcept {
  switch (r) {
  case role::system:
    return "system";
  case role::user:
    return "user";
  case role::assistant:
    return "assistant";
  case role::tool:
    return "tool";
  }
  return "user";
}

/// `bytes` keeps its full size from the start, so that readers on other threads never see its
/// length change; `used` says how much has been handed out for writing, by whichever copy.
struct transcript::block {
  explicit block(std::size_t size) : bytes(size, '\0') {}

  std::string bytes;
  std::atomic<std::size_t> used{0};
};

transcript::transcript(message_encoder encode) : encode_{encode} {}

void transcript::append(const chat_message& message) {
  constexpr std::size_t worth_keeping = 256u << 10;
  thread_local std::string scratch;
  scratch.clear();
  if (!ends_.empty())
    scratch += ',';
  encode_(scratch, message);
  write(scratch);
  if (scratch.capacity() > worth_keeping)
    scratch = {};
}

transcript_view transcript::view() const {
  if (!block_)
    return {};
  return {std::shared_ptr<const std::string>{block_, &block_->bytes}, bytes()};
}

std::string_view transcript::message(std::size_t i) const {
  std::size_t from = i == 0 ? 0 : ends_[i - 1] + std::size_t{1}; // past the comma
  return std::string_view{block_->bytes}.substr(from, ends_[i] - from);
}

void transcript::write(std::string_view piece) {
  auto had = bytes();
  if (!block_ || !claim(piece.size())) {
    auto larger = std::make_shared<block>(had + std::max(piece.size(), had / 2));
    if (block_)
      std::memcpy(larger->bytes.data(), block_->bytes.data(), had);
    larger->used = had + piece.size();
    block_ = std::move(larger);
  }
  std::memcpy(block_->bytes.data() + had, piece.data(), piece.size());
  ends_.push_back(static_cast<std::uint32_t>(had + piece.size()));
}

/// Takes the bytes behind our own end, unless the block lacks them or another copy has them.
bool transcript::claim(std::size_t bytes_wanted) const {
  auto end = bytes();
  return bytes_wanted <= block_->bytes.size() - end
         && block_->used.compare_exchange_strong(end, end + bytes_wanted);
}

} // namespace troupe
