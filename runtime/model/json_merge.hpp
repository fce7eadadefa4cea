#pragma once
// A JSON value that comes in pieces.

#include "runtime/core/json.hpp"

namespace troupe {

/// Adds a piece to what has come: text is appended, and so are lists, whose elements with the same
/// "index" are one; objects are merged member by member; names (type, id, format, index) and
/// everything else are replaced. A null changes nothing.
void merge_piece(json& whole, const json& piece);

}  // namespace troupe
