#pragma once
// A JSON Schema, read once and used for many checks.

#include "runtime/core/error.hpp"
#include "runtime/core/json.hpp"

#include <memory>
#include <string_view>
#include <utility>

namespace troupe {

/// Drafts 4 to 7 (what Valijson knows); `$ref` only within the schema. Cheap to copy; checking is
/// thread-safe.
class compiled_schema {
public:
  /// Errors  invalid_argument: not a schema that can be used, and why.
  [[nodiscard]] static result<compiled_schema> compile(const json& schema);

  /// Errors  invalid_argument: each violation (at most eight) with its place and what was expected
  ///         there, one per line.
  [[nodiscard]] result<void> check(const json& value) const;

private:
  struct impl;
  explicit compiled_schema(std::shared_ptr<const impl> i) : impl_{std::move(i)} {}
  std::shared_ptr<const impl> impl_;
};

/// Checks a JSON value against a JSON Schema (drafts 4 to 7).
/// Errors  invalid_argument: each violation with its place, for the model to mend.
[[nodiscard]] result<void> check_schema(const json& schema, const json& value);

/// "a string", "an integer", "null": what a JSON value is, for messages.
[[nodiscard]] std::string_view json_type_name(const json& value) noexcept;

}  // namespace troupe
