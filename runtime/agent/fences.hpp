#pragma once
// Code in Markdown fences, and code blocks made ready to run.

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

enum class fence_kind : std::uint8_t {
  python,  ///< labelled python, python3 or py
  unlabelled
};

/// The contents of all fences of that kind, in order, tidied, joined by a blank line; empty when
/// there are none. A closing fence starts a line and is not inside a Python string; a missing one
/// means the text's end.
/// Source  CommonMark 0.31, 4.5 "Fenced code blocks" (backtick fences of three).
[[nodiscard]] std::string fenced_code(std::string_view text, fence_kind kind);

/// A block without blank lines around it and without the indentation that all its lines share.
[[nodiscard]] std::string tidy_block(std::string_view block);

}  // namespace troupe
