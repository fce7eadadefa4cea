#include "runtime/policy/context.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace troupe {
namespace {

/// Smaller numbers in a refusal are no windows.
constexpr std::uint64_t least_window = 256;

std::uint32_t narrow(std::uint64_t x) noexcept {
  return static_cast<std::uint32_t>(
    std::min<std::uint64_t>(x, std::numeric_limits<std::uint32_t>::max()));
}

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

/// The number at the start of the text, with or without commas; 0 when there is none.
std::uint64_t number_at(std::string_view text) noexcept {
  constexpr std::uint64_t most = 1'000'000'000'000;
  std::uint64_t out = 0;
  for (auto c : text) {
    if (is_digit(c) && out < most)
      out = out * 10 + static_cast<std::uint64_t>(c - '0');
    else if (c != ',')
      break;
  }
  return out;
}

/// The number that ends the text.
std::uint64_t number_before(std::string_view text) noexcept {
  auto at = text.size();
  while (at > 0 && (is_digit(text[at - 1]) || text[at - 1] == ','))
    --at;
  return number_at(text.substr(at));
}

}  // namespace

void context_gauge::counted(std::size_t bytes, std::uint64_t tokens) noexcept {
  if (tokens == 0)
    return;
  bytes_ = narrow(bytes);
  tokens_ = narrow(tokens);
}

void context_gauge::learn(std::uint64_t window) noexcept {
  if (window != 0)
    window_ = narrow(window);
}

std::uint64_t context_gauge::tokens(std::size_t bytes) const noexcept {
  if (bytes >= bytes_)
    return tokens_ + (bytes - bytes_) / bytes_per_token;
  auto less = (bytes_ - bytes) / bytes_per_token;
  return tokens_ > less ? tokens_ - less : 0;
}

bool context_gauge::too_long(std::size_t bytes, double share) const noexcept {
  return window_ != 0 && static_cast<double>(tokens(bytes)) > share * window_;
}

std::size_t context_gauge::target(double share) const noexcept {
  constexpr double of_the_limit = 0.75;
  auto wanted = static_cast<std::uint64_t>(share * of_the_limit * window_);
  if (wanted >= tokens_)
    return bytes_ + (wanted - tokens_) * bytes_per_token;
  auto less = (tokens_ - wanted) * bytes_per_token;
  return bytes_ > less ? bytes_ - less : 0;
}

std::optional<std::size_t> observation_bytes(const context_settings& settings,
                                             const context_gauge& gauge) noexcept {
  auto tokens = settings.observation_tokens != 0 ? settings.observation_tokens : gauge.window() / 4;
  if (tokens == 0)
    return std::nullopt;
  return static_cast<std::size_t>(tokens * bytes_per_token);
}

std::optional<std::uint64_t> window_in(std::string_view refusal) noexcept {
  constexpr std::array<std::string_view, 4> before = {"context length is ", "tokens allowed (",
                                                      "context window of ", "> "};
  for (auto words : before)
    if (auto at = refusal.find(words); at != std::string_view::npos)
      if (auto found = number_at(refusal.substr(at + words.size())); found >= least_window)
        return found;
  if (auto at = refusal.find(" maximum context length"); at != std::string_view::npos)
    if (auto found = number_before(refusal.substr(0, at)); found >= least_window)
      return found;
  return std::nullopt;
}

}  // namespace troupe
