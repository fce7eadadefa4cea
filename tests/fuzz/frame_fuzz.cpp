// A worker's stream: cut into frames however it arrives, each frame read as a message. The first
// byte says how large the pieces are in which the rest arrives.

#include "executors/frame_splitter.hpp"
#include "executors/worker_protocol.hpp"
#include "tests/fuzz/fuzz_support.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace troupe;

namespace {

constexpr std::size_t max_frame_bytes = 16u << 10;

struct cut_stream {
  std::vector<std::string> frames;
  bool refused = false;
  std::size_t pending = 0;

  bool operator==(const cut_stream&) const = default;
};

cut_stream cut(std::string_view stream, std::size_t piece) {
  frame_splitter splitter{max_frame_bytes};
  cut_stream out;
  while (!stream.empty() && !out.refused) {
    splitter.feed(stream.substr(0, piece));
    stream.remove_prefix(std::min(piece, stream.size()));
    auto next = splitter.next();
    for (; next && *next; next = splitter.next()) {
      fuzz::require((*next)->size() <= max_frame_bytes, "a frame is within the limit");
      out.frames.push_back(**std::move(next));
    }
    if (!next)
      fuzz::require_decent(next.error());
    out.refused = !next;
  }
  out.pending = out.refused ? 0 : splitter.pending();
  return out;
}

/// What is read without a tree says what the tree does: a space before it takes the longer way.
void compare_ways(std::string_view body, const result<worker::message>& read) {
  auto whole = worker::parse(" " + std::string{body});
  fuzz::require(read.has_value() == whole.has_value(), "both ways read the same frames");
  if (!read || !std::holds_alternative<worker::done>(*read))
    return;
  const auto &x = std::get<worker::done>(*read), &y = std::get<worker::done>(*whole);
  fuzz::require(x.id == y.id && x.end == y.end && x.is_final == y.is_final && x.cpu == y.cpu
                  && x.max_rss_bytes == y.max_rss_bytes && x.failure == y.failure
                  && x.error.has_value() == y.error.has_value()
                  && x.result.has_value() == y.result.has_value(),
                "both ways read the same reply");
  if (x.result)
    fuzz::require(x.result->text == y.result->text
                    && x.result->tagged.dump() == y.result->tagged.dump(),
                  "both ways read the same result");
}

void read(std::string_view body) {
  auto message = worker::parse(body);
  compare_ways(body, message);
  if (!message) {
    fuzz::require_decent(message.error());
    return;
  }
  if (auto* call = std::get_if<worker::call>(&*message)) {
    fuzz::require(call->arguments.is_object(), "a call's arguments are an object");
    fuzz::require(check_tagged(to_tagged(call->arguments)).has_value(),
                  "a call's arguments can be sent back");
  } else if (auto& done = std::get<worker::done>(*message); done.result) {
    fuzz::require_sound(done.result->tagged);
    fuzz::require(is_utf8(done.result->text), "a result's text is UTF-8");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  auto stream = fuzz::text_of(data + 1, size - 1);
  auto whole = cut(stream, stream.size());
  auto pieces = cut(stream, std::size_t{data[0]} + 1);
  fuzz::require(whole == pieces, "frames do not depend on how the bytes arrived");
  std::string joined;
  for (const auto& body : whole.frames) {
    joined += make_frame(body);
    read(body);
  }
  fuzz::require(stream.starts_with(joined), "frames make the stream that they were cut from");
  // Without a length in front, so that mutations of the text need not keep it true.
  read(stream);
  return 0;
}
