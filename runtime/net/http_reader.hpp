#pragma once
// HTTP/1.1 messages off the wire, piece by piece: no socket, no clock. Beast is behind it.

#include "runtime/core/error.hpp"
#include "runtime/net/http.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace troupe {

/// A request or a response; the members of the other stay empty.
struct http_message {
  unsigned status = 0;
  unsigned version = 11;  ///< 10 for HTTP/1.0, 11 for HTTP/1.1
  std::string reason{};   ///< the status line's words
  std::string method{};
  std::string target{};
  header_fields headers{};  ///< names in lower case
  std::string body{};

  /// The first header of that name, or "".
  [[nodiscard]] std::string_view header(std::string_view name) const;
};

/// Reads messages one after the other. Bytes beyond the end of one wait for `next`.
class http_reader {
public:
  enum class kind { request, response };

  http_reader(kind what, std::size_t max_body_bytes);
  ~http_reader();
  http_reader(const http_reader&) = delete;
  http_reader& operator=(const http_reader&) = delete;

  /// Forgets the message read and begins another. `no_body` for the answer to a HEAD.
  void next(bool no_body = false);

  /// Takes more bytes. An interim response (1xx) is read over.
  /// Errors  over_budget: header or body too long; corrupt: not HTTP, or against its rules.
  [[nodiscard]] result<void> feed(std::string_view bytes);

  /// The peer will send no more: ends a body that has no other end.
  /// Errors  unavailable: the message is not complete; the detail says how far it came.
  [[nodiscard]] result<void> feed_end();

  [[nodiscard]] bool started() const noexcept;  ///< some byte of this message was seen
  [[nodiscard]] bool header_done() const noexcept;
  [[nodiscard]] bool done() const noexcept;
  [[nodiscard]] bool keep_alive() const noexcept;  ///< once done: the stream may carry another

  /// Bytes that came after the message's end.
  [[nodiscard]] std::size_t waiting() const noexcept;

  [[nodiscard]] http_message& message() noexcept;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe
