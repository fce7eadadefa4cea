#pragma once
// The bytes of a server's answer: its head, and the frames of a body that comes in pieces.

#include "runtime/net/http.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// How the one who asked can be answered.
struct answer_form {
  unsigned version = 11;   ///< of the request: 10 or 11
  bool keep_alive = true;  ///< the connection carries another answer after this one
};

/// True for statuses that a body may follow.
[[nodiscard]] bool has_body(unsigned status) noexcept;

/// Status line and headers, the empty line included. A body from a source is chunked; for HTTP/1.0,
/// which has no chunks, it ends with the connection.
[[nodiscard]] std::string head_of(const server_response& response, const answer_form& form);

/// What stands before and after a chunk of so many bytes (RFC 9112, section 7.1). A chunk of none
/// would end the body, so it has no frame.
[[nodiscard]] std::string chunk_head(std::size_t bytes);
[[nodiscard]] std::string_view chunk_tail(std::size_t bytes, bool last) noexcept;

[[nodiscard]] server_response plain_text(unsigned status, std::string text);

}  // namespace troupe
