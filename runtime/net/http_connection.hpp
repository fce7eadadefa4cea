#pragma once
// One client connection: carries one exchange after the other. The pool above it owns time, retries
// and the decision to close. Used on the reactor's thread only.

#include "runtime/net/byte_stream.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/http_phase.hpp"
#include "runtime/net/http_reader.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe {

/// A request ready to be written: its header, and the body it came with.
struct outgoing {
  std::string header;
  http_request request;
};

class http_connection : public std::enable_shared_from_this<http_connection> {
public:
  struct ended {
    result<http_response> response;
    bool reusable = false;    ///< may carry another exchange
    bool unanswered = false;  ///< the peer closed before it sent one byte
    bool unseen = false;      ///< and before one byte of the request had reached it
  };
  using ended_fn = std::function<void(ended)>;
  using piece_fn = std::function<void(std::string_view)>;

  http_connection(std::unique_ptr<byte_stream> stream, std::size_t max_response_bytes)
    : stream_{std::move(stream)}, reader_{http_reader::kind::response, max_response_bytes} {}

  /// Writes the request and reads its answer, both at once: a server may answer before it has read
  /// all. Calls `then` once, later, unless closed before. With `piece`, a 2xx answer's body goes
  /// there as it comes, and is not kept.
  void exchange(const std::shared_ptr<const outgoing>& out, piece_fn piece, ended_fn then);

  /// The answer as far as it has come.
  [[nodiscard]] const http_message& answer() noexcept { return reader_.message(); }

  /// Ends whatever goes on; nothing is called any more. Idempotent.
  void close() noexcept;

  [[nodiscard]] http_phase phase() const noexcept { return phase_; }
  [[nodiscard]] bool is_quiet() { return stream_->is_quiet(); }

private:
  void note_earlier(const outgoing& out);
  void write(const std::shared_ptr<const outgoing>& out);
  void read();
  void on_read(error_code ec, std::size_t bytes);
  void on_end(const error_code& ec);
  void pass_on_body();
  void unanswered(error why);
  [[nodiscard]] bool was_seen() const;
  void finish(ended how);

  std::unique_ptr<byte_stream> stream_;
  http_reader reader_;
  bool written_ = false;
  bool refused_whole_ = false;  ///< the write failed before its first byte
  /// What the peer's system has acknowledged when all requests before this one have come there.
  std::optional<std::uint64_t> earlier_bytes_;
  std::uint64_t own_bytes_ = 0;  ///< of this exchange's request
  http_phase phase_ = http_phase::sending;
  ended_fn ended_;
  piece_fn piece_;
  std::array<char, 8192> buffer_;
};

}  // namespace troupe
