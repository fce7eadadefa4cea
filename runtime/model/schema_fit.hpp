#pragma once
// Arguments and answers made to fit their schema before it judges them, as far as nothing is lost
// by it.

#include "runtime/core/json.hpp"

namespace troupe {

/// Turns values into the type that the schema names, at any depth, where that keeps their meaning
/// whole: the text "3" into 3, 3.0 into 3 where an integer is wanted, "true" into true, "null" into
/// null, a text that holds an object or an array into that. What has an accepted type already, or
/// would lose something (3.5, "3.5" for an integer; more digits than a number holds), stays as it
/// is. Of alternatives (anyOf, oneOf) the one whose type the value has counts, else the first that
/// the value can be turned into.
void coerce(const json& schema, json& value);

/// Fills in the defaults of properties that are missing, and of those that are null where the
/// schema has no null, at any depth.
void fill_defaults(const json& schema, json& value);

/// The schema under which a property that has a default may be left out or null, at any depth.
[[nodiscard]] json with_defaults_optional(json schema);

/// What a schema's $ref names within `root`; null when it has none, or one that leads nowhere.
[[nodiscard]] const json* reference_of(const json& root, const json& schema);

/// What a schema stands for: itself, or what its $ref leads to in the end. Null for a reference
/// that leads nowhere.
[[nodiscard]] const json* referred(const json& root, const json& schema);

}  // namespace troupe
