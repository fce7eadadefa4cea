#pragma once
// The form that an agent's answers must have: told to the model, and held against what it gives.

#include "runtime/core/value.hpp"
#include "runtime/model/chat.hpp"
#include "runtime/model/schema.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// A JSON Schema for answers. Value; cheap to copy.
class answer_shape {
public:
  /// Errors  invalid_argument: not a schema that can be used, and why.
  [[nodiscard]] static result<answer_shape> make(const ordered_json& schema);

  /// Turns the answer into the schema's types where nothing is lost, and fills in defaults. One
  /// that fits is plain JSON, and that is its text; a string stands for itself.
  /// Errors  invalid_argument: what to change, for the model; the answer is as it was then.
  [[nodiscard]] result<void> fit(value& answer) const;

  /// An answer that was given as a reply's text: its JSON where it holds any, else a string.
  [[nodiscard]] value read(std::string_view text) const;

  /// What a provider is asked to hold the reply to. Providers want an object: a schema of another
  /// type is wrapped into one, which `read` undoes.
  [[nodiscard]] output_schema output() const;

  /// Puts the form into the tool that ends the run: its only parameter gets the schema, and its
  /// description says what is wanted.
  void tell(tool_spec& answer_tool) const;

  /// The schema as the model reads it.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

private:
  answer_shape(const ordered_json& schema, compiled_schema compiled);

  ordered_json schema_;
  json defaults_;  ///< the schema that values are made to fit
  json accepted_;  ///< the schema that they are held against
  std::string text_;
  compiled_schema compiled_;
};

}  // namespace troupe
