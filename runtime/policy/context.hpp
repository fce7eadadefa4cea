#pragma once
// How much of a conversation a model can read: when it has become too long, and how long one
// observation may be.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe {

/// Of text, roughly. Source  OpenAI, "What are tokens and how to count them?": 4 characters of
/// English.
constexpr std::uint64_t bytes_per_token = 4;

struct context_settings {
  std::uint64_t window = 0;      ///< tokens that the model takes in one request; 0: not known
  double share = 0.8;            ///< of it, from which on the history is shortened; in (0, 1]
  std::uint32_t keep_steps = 3;  ///< so many last steps are never shortened; at least 1
  std::uint64_t observation_tokens =
    0;  ///< of one observation; 0: a quarter of the window, if known
};

/// The size of one conversation in tokens: what the server counted last, and an estimate of what
/// came since. Value.
class context_gauge {
public:
  explicit context_gauge(std::uint64_t window = 0) noexcept { learn(window); }

  /// Bytes at the start that cost so many tokens: images.
  void begin(std::size_t bytes, std::uint64_t tokens) noexcept { counted(bytes, tokens); }

  /// The server counted `tokens` for a conversation of `bytes`; 0 tokens: it did not say.
  void counted(std::size_t bytes, std::uint64_t tokens) noexcept;

  /// The window is that large; 0: still not known.
  void learn(std::uint64_t window) noexcept;

  [[nodiscard]] std::uint64_t window() const noexcept { return window_; }

  /// Of the conversation, were it of that many bytes.
  [[nodiscard]] std::uint64_t tokens(std::size_t bytes) const noexcept;

  /// The size from which on it is too long; never without a window.
  [[nodiscard]] bool too_long(std::size_t bytes, double share) const noexcept;

  /// Bytes down to which a conversation that is too long should be brought, so that the next steps
  /// do not make it too long again.
  [[nodiscard]] std::size_t target(double share) const noexcept;

private:
  std::uint32_t window_ = 0;
  std::uint32_t bytes_ = 0;
  std::uint32_t tokens_ = 0;
};

/// Bytes that one observation may have; nothing: no limit by tokens.
[[nodiscard]] std::optional<std::size_t> observation_bytes(const context_settings& settings,
                                                           const context_gauge& gauge) noexcept;

/// The window that a server's refusal of too long a prompt names; nothing when it names none.
/// Source  the texts of OpenAI, vLLM, Anthropic, Gemini and Mistral.
[[nodiscard]] std::optional<std::uint64_t> window_in(std::string_view refusal) noexcept;

}  // namespace troupe
