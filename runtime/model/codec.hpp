#pragma once
// A provider's wire format as pure functions: request bytes out, reply or failure in. No sockets.

#include "runtime/model/chat.hpp"
#include "runtime/model/sse.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

using header_list = std::vector<std::pair<std::string, std::string>>;

/// What came of a call or a try.
using model_outcome = tl::expected<model_reply, model_failure>;

/// In one piece, or event by event.
enum class delivery : std::uint8_t { whole, streamed };

/// A request body in pieces that are written one after the other; the middle one is shared with
/// the transcript and is not copied.
struct encoded_request {
  std::string target;  ///< path and query below the endpoint's base URL, e.g. "/chat/completions"
  std::string head;
  transcript_view messages;
  std::string tail;

  [[nodiscard]] std::size_t bytes() const { return head.size() + messages.size + tail.size(); }
};

/// Puts one streamed reply together. Its result is what `codec::decode` makes of the same reply in
/// one piece.
class reply_assembler {
public:
  virtual ~reply_assembler() = default;

  /// Takes the next event; pieces that viewers may see are appended to `seen`.
  /// Errors  what the server reported in mid-stream, or bad_reply for an event of another shape.
  [[nodiscard]] virtual tl::expected<void, model_failure> take(const sse_event& event,
                                                               std::vector<model_delta>& seen) = 0;

  /// The last event has come: nothing that follows matters.
  [[nodiscard]] virtual bool complete() const = 0;

  /// The reply has ended, though its usage may follow.
  [[nodiscard]] virtual bool ended() const = 0;

  /// The reply; once, when it has ended.
  [[nodiscard]] virtual model_outcome finish() = 0;
};

/// Stateless and constant.
class codec {
public:
  virtual ~codec() = default;

  [[nodiscard]] virtual message_encoder encoder() const = 0;

  /// `request.messages` must come from this codec's encoder. A member of extra_body replaces ours
  /// of that name, null removes it; the messages and "stream" in it are not sent.
  [[nodiscard]] virtual encoded_request encode(const model_request& request,
                                               delivery how) const = 0;

  /// Headers of every request: the key (none for an empty one), and what the format demands.
  [[nodiscard]] virtual header_list headers(std::string_view key) const = 0;

  /// A call without arguments has "{}"; one without an id gets "call_<n>", n from 0.
  /// Errors  a model_failure of kind bad_reply that says in one line what was wrong with the body,
  ///         or of the kind that an error object inside a 200 names by its own code.
  [[nodiscard]] virtual model_outcome decode(std::string_view body) const = 0;

  [[nodiscard]] virtual std::unique_ptr<reply_assembler> assembler() const = 0;

  /// What a status other than 2xx means. Header names in `headers` are lower case.
  [[nodiscard]] virtual model_failure classify(unsigned status, const header_list& headers,
                                               std::string_view body) const;
};

enum class wire_format : std::uint8_t { openai_chat, openai_responses, anthropic };

/// How a provider speaks its wire format.
struct codec_options {
  wire_format wire = wire_format::openai_chat;
  bool azure = false;  ///< openai: the key travels as api-key
  /// anthropic: the value of anthropic-version, 2023-06-01 when empty. azure: of api-version, where
  /// the model is a deployment in the path; empty: Azure's v1 API, whose paths are OpenAI's.
  std::string version{};
  /// anthropic: the server is asked to keep what it has read of the prompt: up to the system prompt
  /// for all runs, and up to the last message for the run's next turn. Others do so by themselves.
  bool prompt_cache = false;
};

[[nodiscard]] std::shared_ptr<const codec> make_codec(const codec_options& options);

/// OpenAI's chat completions, with the deviations of compatible servers tolerated: make_codec({}).
[[nodiscard]] const codec& openai_codec();

}  // namespace troupe
