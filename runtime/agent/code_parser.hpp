#pragma once
// Finds the code in a model's reply. Text only: whether it is Python is asked of the sandbox.

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// What encloses code. Literal text, never a pattern; neither may be empty.
struct code_tags {
  std::string_view open = "<code>";
  std::string_view close = "</code>";
};

/// Where the code stood in the reply.
enum class code_source : std::uint8_t {
  none,       ///< no code and nothing that could be code
  tags,       ///< between the code tags
  fence,      ///< in Markdown fences, no tags used
  bare,       ///< the whole reply, which may be prose
  structured  ///< in JSON that was asked for; see structured_reply.hpp
};

struct parsed_reply {
  code_source source = code_source::none;
  std::string code{};  ///< blocks in order, trimmed, joined by a blank line
  /// The reply as it goes into memory: without think blocks, ending with the closing tag when
  /// generation stopped there, cut before an observation that the model made up after its code.
  std::string message{};
  bool cut = false;         ///< the last block has no closing tag
  bool in_thought = false;  ///< the reply ended inside a think block
};

/// Shape   think blocks (<think>, <thinking>, <reasoning>) are ignored, also with the opening tag
///         missing or, up to the reply's end, the closing one. Then: text between the code tags
///         (a fence directly inside is unwrapped); else python fences; else unlabelled fences; else
///         the whole reply. A closing tag inside a Python string does not end the code.
/// Units   linear in the reply's size.
/// Errors  none; source none when there is nothing to run.
[[nodiscard]] parsed_reply parse_reply(std::string_view reply, const code_tags& tags);

/// What the model is told when its reply held no code: the format, and how to call final_answer
/// when it seems to have meant an answer.
[[nodiscard]] std::string format_error(const parsed_reply& parsed, const code_tags& tags);

/// True when the text speaks of a final answer.
[[nodiscard]] bool mentions_answer(std::string_view text);

/// A reply in which code is not expected (the forced answer): without think blocks, trimmed.
[[nodiscard]] std::string without_thoughts(std::string_view reply);

}  // namespace troupe
