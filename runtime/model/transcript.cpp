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

/// Its bytes are written once, front to back; `used` says how far they have been handed out for
/// writing, by whichever copy of the transcript. Readers know their end from their view.
struct transcript_chunk {
  transcript_chunk(std::shared_ptr<const transcript_chunk> previous, std::size_t offset,
                   std::size_t bytes_wanted)
    : before{std::move(previous)}, start{static_cast<std::uint32_t>(offset)},
      capacity{static_cast<std::uint32_t>(bytes_wanted)},
      bytes{std::make_unique_for_overwrite<char[]>(bytes_wanted)} {}

  std::shared_ptr<const transcript_chunk> before;
  std::uint32_t start;  ///< offset of its first byte in the conversation
  std::uint32_t capacity;
  std::atomic<std::uint32_t> used{0};
  std::unique_ptr<char[]> bytes;
};

std::vector<std::string_view> transcript_view::pieces() const {
  std::vector<std::string_view> out;
  auto end = size;
  for (auto* c = last.get(); c != nullptr; c = c->before.get()) {
    if (end > c->start)
      out.emplace_back(c->bytes.get(), end - c->start);
    end = std::min<std::size_t>(end, c->start);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::string transcript_view::text() const {
  std::string out;
  out.reserve(size);
  for (auto piece : pieces())
    out += piece;
  return out;
}

transcript::transcript(message_encoder encode) : encode_{encode} {}

void transcript::append(const chat_message& message) {
  constexpr std::size_t worth_keeping = 256u << 10;
  thread_local std::string scratch;
  scratch.clear();
  auto after = encode_(scratch, message, state());
  write(scratch, after, message.from);
  if (scratch.capacity() > worth_keeping)
    scratch = {};
}

transcript transcript::with_first(const chat_message& message) const {
  transcript out{encode_};
  out.append(message);
  auto first = out.marks_.front().end;
  if (size() > 1)
    out.write(view().text().substr(marks_.front().end), state(), marks_.back().from);
  out.marks_.resize(1);
  for (std::size_t i = 1; i < size(); ++i)
    out.marks_.push_back(
      {marks_[i].end - marks_.front().end + first, marks_[i].state, marks_[i].from});
  return out;
}

std::string transcript::message(std::size_t i) const {
  auto piece = view().text().substr(start_of(i), marks_[i].end - start_of(i));
  if (piece.starts_with(','))
    piece.erase(0, 1);
  return piece;
}

void transcript::write(std::string_view piece, encoder_state state, role from) {
  auto end = bytes();
  auto whole = end + piece.size();
  if (last_) {
    // The rest of the last chunk, unless another copy has written there.
    auto mine = static_cast<std::uint32_t>(end) - last_->start;
    auto fits =
      static_cast<std::uint32_t>(std::min<std::size_t>(piece.size(), last_->capacity - mine));
    if (fits > 0 && last_->used.compare_exchange_strong(mine, mine + fits)) {
      std::memcpy(last_->bytes.get() + (end - last_->start), piece.data(), fits);
      end += fits;
      piece.remove_prefix(fits);
    }
  }
  if (!piece.empty()) {
    // The first message is the system prompt, which copies share: it gets a chunk of its size.
    auto room = end == 0
                  ? piece.size()
                  : std::max(piece.size(), std::clamp<std::size_t>(end / 16, 1400, 1u << 20));
    last_ = std::make_shared<transcript_chunk>(last_, end, room);
    std::memcpy(last_->bytes.get(), piece.data(), piece.size());
    last_->used = static_cast<std::uint32_t>(piece.size());
  }
  marks_.push_back({static_cast<std::uint32_t>(whole), state, from});
}

}  // namespace troupe
