#pragma once
// What the codecs' tests share: requests as JSON, and streams cut into pieces of every size.

#include "runtime/core/text.hpp"
#include "runtime/model/codec.hpp"
#include "runtime/model/reply_stream.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::test {

inline encoded_request encoded(const codec& format, const model_settings& settings,
                               const std::vector<chat_message>& messages,
                               delivery how = delivery::whole) {
  transcript t{format.encoder()};
  for (auto& message : messages)
    t.append(message);
  model_request request;
  request.settings = std::make_shared<model_settings>(settings);
  request.messages = t.view();
  return format.encode(request, how);
}

inline json body_of(const codec& format, const model_settings& settings,
                    const std::vector<chat_message>& messages, delivery how = delivery::whole) {
  auto e = encoded(format, settings, messages, how);
  auto text = e.head + e.messages.text() + e.tail;
  INFO(text);
  auto parsed = json::parse(text, nullptr, false);
  REQUIRE(parsed.is_object());
  return parsed;
}

/// A stream as a viewer and the caller of the client got it.
struct streamed {
  model_outcome outcome;
  std::vector<model_delta> seen;
  bool complete = false;  ///< known to be over before the bytes' end was

  [[nodiscard]] std::string text(model_delta::kind what = model_delta::kind::text) const {
    std::string out;
    for (auto& d : seen)
      if (d.what == what)
        out += d.text;
    return out;
  }
};

/// Feeds `bytes` in pieces of `size`, then their end: `broken` tells how it came, if badly.
inline streamed stream(const codec& format, std::string_view bytes, std::size_t size,
                       const model_settings& settings = {},
                       std::optional<model_failure> broken = {}) {
  reply_stream s{format, std::make_shared<model_settings>(settings)};
  streamed out;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size())))
    for (auto& d : s.feed(bytes.substr(0, size)))
      out.seen.push_back(std::move(d));
  out.complete = s.complete();
  out.outcome = s.finish(std::move(broken), out.seen);
  for (auto& d : out.seen)
    CHECK(is_utf8(d.text));
  if (out.outcome)
    CHECK(out.text() == out.outcome->text);
  return out;
}

/// The reply of a stream, which must be the same wherever its bytes are cut.
inline model_reply streamed_reply(const codec& format, std::string_view bytes,
                                  const model_settings& settings = {}) {
  auto whole = stream(format, bytes, bytes.size(), settings);
  INFO((whole.outcome ? std::string{} : whole.outcome.error().detail));
  REQUIRE(whole.outcome);
  for (std::size_t size : {1, 2, 3, 7, 64}) {
    auto cut = stream(format, bytes, size, settings);
    INFO("pieces of " << size << " bytes");
    REQUIRE(cut.outcome);
    CHECK(*cut.outcome == *whole.outcome);
  }
  return *whole.outcome;
}

inline model_failure streamed_failure(const codec& format, std::string_view bytes,
                                      const model_settings& settings = {}) {
  auto whole = stream(format, bytes, bytes.size(), settings);
  auto cut = stream(format, bytes, 1, settings);
  REQUIRE(!whole.outcome);
  REQUIRE(!cut.outcome);
  CHECK(cut.outcome.error().detail == whole.outcome.error().detail);
  CHECK(whole.outcome.error().detail.find('\n') == std::string::npos);
  CHECK(whole.outcome.error().detail.size() < 700);
  return whole.outcome.error();
}

/// One `data:` event per text, in the way of chat completions. Texts are written here over several
/// lines, but stand on one.
inline std::string events(std::initializer_list<std::string_view> data,
                          std::string_view newline = "\n") {
  std::string out;
  for (auto d : data) {
    out += "data: ";
    std::copy_if(d.begin(), d.end(), std::back_inserter(out), [](char c) { return c != '\n'; });
    (out += newline) += newline;
  }
  return out;
}

inline model_reply decoded(const codec& format, std::string_view body) {
  auto reply = format.decode(body);
  INFO((reply ? std::string{} : reply.error().detail));
  REQUIRE(reply);
  return *reply;
}

inline bool has(const std::string& text, std::string_view part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace troupe::test
