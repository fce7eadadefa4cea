#include "executors/frame_splitter.hpp"

#include <cstdint>

namespace troupe {
namespace {

constexpr std::size_t header_bytes = 4;

}  // namespace

result<std::optional<std::string>> frame_splitter::next() {
  if (buffer_.size() < header_bytes)
    return std::nullopt;
  std::uint32_t size = 0;
  for (std::size_t i = 0; i < header_bytes; ++i)
    size = (size << 8) | static_cast<unsigned char>(buffer_[i]);
  if (size > max_bytes_)
    return fail(errc::corrupt, "a frame of " + std::to_string(size) + " bytes, more than the "
                                 + std::to_string(max_bytes_) + " allowed");
  if (buffer_.size() < header_bytes + size)
    return std::nullopt;
  auto body = buffer_.substr(header_bytes, size);
  buffer_.erase(0, header_bytes + size);
  return body;
}

std::string make_frame(std::string_view body) {
  auto size = static_cast<std::uint32_t>(body.size());
  std::string frame;
  frame.reserve(header_bytes + body.size());
  for (int shift = 24; shift >= 0; shift -= 8)
    frame += static_cast<char>((size >> shift) & 0xFF);
  frame += body;
  return frame;
}

}  // namespace troupe
