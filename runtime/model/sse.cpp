#include "runtime/model/sse.hpp"

#include <utility>

namespace troupe {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

tl::unexpected<error> too_long(std::size_t limit) {
  return fail(errc::over_budget,
              "an event of the stream is longer than " + std::to_string(limit) + " bytes");
}

}  // namespace

result<void> sse_splitter::feed(std::string_view bytes, std::vector<sse_event>& out) {
  if (std::exchange(after_cr_, after_cr_ && bytes.empty()) && bytes.starts_with('\n'))
    bytes.remove_prefix(1);
  while (!bytes.empty()) {
    auto end = bytes.find_first_of("\r\n");
    auto piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > max_)
      return too_long(max_);
    if (end == std::string_view::npos) {
      line_ += piece;
      return {};
    }
    auto whole = line_.empty() ? piece : std::string_view{line_ += piece};
    if (auto ok = take_line(whole, out); !ok)
      return ok;
    line_.clear();
    auto is_cr = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (is_cr && bytes.starts_with('\n'))
      bytes.remove_prefix(1);
    else
      after_cr_ = is_cr && bytes.empty();
  }
  return {};
}

result<void> sse_splitter::feed_end(std::vector<sse_event>& out) {
  if (auto ok = line_.empty() ? result<void>{} : take_line(line_, out); !ok)
    return ok;
  line_.clear();
  dispatch(out);
  return {};
}

result<void> sse_splitter::take_line(std::string_view line, std::vector<sse_event>& out) {
  if (std::exchange(at_start_, false) && line.starts_with(byte_order_mark))
    line.remove_prefix(byte_order_mark.size());
  if (line.empty()) {
    dispatch(out);
    return {};
  }
  auto colon = line.find(':');
  auto field = line.substr(0, colon);
  auto value = colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
  if (value.starts_with(' '))
    value.remove_prefix(1);
  if (field == "event")
    event_.name = value;
  if (field != "data")
    return {};
  if (event_.name.size() + event_.data.size() + value.size() > max_)
    return too_long(max_);
  if (std::exchange(has_data_, true))
    event_.data += '\n';
  event_.data += value;
  return {};
}

void sse_splitter::dispatch(std::vector<sse_event>& out) {
  if (std::exchange(has_data_, false))
    out.push_back(std::move(event_));
  event_ = {};
}

}  // namespace troupe
