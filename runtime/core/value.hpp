#pragma once
// Python values across the boundary: tagged JSON, never pickle.

#include "runtime/core/error.hpp"
#include "runtime/core/json.hpp"

#include <string>

namespace troupe {

/// A value that code inside a sandbox produced.
/// `tagged` is JSON in which what JSON lacks stands as an object with "__type__": tuple, set,
/// frozenset, bytes (base64), complex, float (nan, inf, -inf), int (beyond 64 bits, as digits),
/// dict (pairs, when a key is no string or is "__type__"), datetime, date, time, timedelta,
/// Decimal, Path, ndarray, dataclass. `text` is Python's str() of it, as the model would print it.
/// Source: smolagents' serialization.py for the tags; escaping, large ints and non-finite floats
/// are ours.
struct value {
  json tagged;
  std::string text;

  bool operator==(const value&) const = default;
};

struct value_limits {
  std::size_t max_text_bytes = 64u << 10;
  unsigned max_depth = 32;
};

/// Checks the tags of hostile input: known types, right shapes, bounded depth.
/// Errors  corrupt: where and what.
[[nodiscard]] result<void> check_tagged(const json& tagged, const value_limits& limits = {});

/// The nearest plain JSON: tuples and sets become arrays, dates ISO strings, Decimals and
/// non-finite floats strings, other keys their text.
[[nodiscard]] json to_plain(const json& tagged);

/// Plain JSON as tagged: only objects with a "__type__" key need escaping.
[[nodiscard]] json to_tagged(const json& plain);

}  // namespace troupe
