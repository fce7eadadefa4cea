#pragma once
// Small text questions asked all over: UTF-8, cutting long text, the nearest name.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// True for well-formed UTF-8 (no surrogates, no overlong forms; RFC 3629).
[[nodiscard]] bool is_utf8(std::string_view bytes) noexcept;

/// The text with each malformed sequence replaced by U+FFFD.
[[nodiscard]] std::string to_utf8(std::string_view bytes);

/// `text` if it has at most `max_bytes`, else its head and tail around a notice that says how
/// many bytes were cut. Never splits a UTF-8 sequence. The notice comes on top of `max_bytes`.
[[nodiscard]] std::string cut_middle(std::string_view text, std::size_t max_bytes);

/// The longest prefix of at most `max_bytes` that ends between UTF-8 sequences.
[[nodiscard]] std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes) noexcept;

/// `text` without white space at both ends.
[[nodiscard]] std::string_view trim(std::string_view text) noexcept;

/// The candidate with the smallest edit distance to `name`, if it is near enough to be meant
/// (at most two fifths of the longer length, at least 1); else empty.
[[nodiscard]] std::string_view nearest(std::string_view name,
                                       const std::vector<std::string_view>& candidates);

/// " (did you mean 'x'?)" for the nearest candidate, or "".
[[nodiscard]] std::string did_you_mean(std::string_view name,
                                       const std::vector<std::string_view>& candidates);

}  // namespace troupe
