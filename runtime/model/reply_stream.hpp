#pragma once
// From the bytes of a streamed answer to pieces for viewers and one reply. No socket, no clock.

#include "runtime/model/codec.hpp"
#include "runtime/model/enforce.hpp"
#include "runtime/model/sse.hpp"
#include "runtime/model/surrogates.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Reads one answer. A server that does not stream although it was asked to answers in one piece
/// of JSON: that is read as well. What viewers saw of the text is the final reply's text.
class reply_stream {
public:
  reply_stream(const codec& format, std::shared_ptr<const model_settings> settings);

  /// Takes more bytes; returns what may be shown. After a failure nothing more is looked at.
  [[nodiscard]] std::vector<model_delta> feed(std::string_view bytes);

  /// True once nothing that may still come can change the outcome.
  [[nodiscard]] bool complete() const noexcept;

  /// The outcome, once; the last pieces are appended to `seen`. `broken` says what went wrong
  /// below, if something did: it counts only when the reply is not whole without what is missing.
  [[nodiscard]] model_outcome finish(std::optional<model_failure> broken,
                                     std::vector<model_delta>& seen);

private:
  void take_bytes(std::string_view bytes, std::vector<model_delta>& seen);
  void take_events(const std::vector<sse_event>& events, std::vector<model_delta>& seen);
  void filter(std::vector<model_delta> pieces, std::vector<model_delta>& seen);
  [[nodiscard]] model_outcome outcome(std::optional<model_failure> broken);
  [[nodiscard]] model_failure ended_early() const;

  enum class shape { unknown, events, one_piece };

  const codec& format_;
  std::shared_ptr<const model_settings> settings_;
  std::unique_ptr<reply_assembler> assembler_;
  sse_splitter splitter_;
  surrogate_joiner joiner_;
  stop_filter stops_;
  std::optional<model_failure> failure_;
  std::string start_;  ///< white space, until the answer's shape is known
  std::string body_;   ///< of an answer in one piece; of a stream, its beginning
  std::size_t events_ = 0;
  bool text_seen_ = false;
  shape shape_ = shape::unknown;
};

}  // namespace troupe
