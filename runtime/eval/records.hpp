#pragma once
// A dataset's text cut into records, each with its place, before anything is understood.

#include "runtime/core/error.hpp"
#include "runtime/core/json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A place in a text, from 1. Columns count bytes.
struct text_place {
  std::size_t line = 1;
  std::size_t column = 1;
};

/// The place `offset` bytes into `text`, which itself begins at `begin`.
[[nodiscard]] text_place place_at(std::string_view text, std::size_t offset, text_place begin = {});

/// One sample before it is checked: JSON text as it stands, or the object that a CSV row makes.
struct record {
  text_place begin;
  std::string_view text;  ///< JSON; empty for CSV
  json row;               ///< CSV; null for JSON
  std::string broken;     ///< why a CSV row cannot be used; empty: it can
};

/// "line 3, column 14"
[[nodiscard]] std::string to_string(text_place place);

[[nodiscard]] std::vector<record> split_lines(std::string_view text);

/// The elements of one JSON array.
/// Errors  corrupt: place, what was expected.
[[nodiscard]] result<std::vector<record>> split_array(std::string_view text);

/// Rows as objects by header; cells of `json_columns` are parsed, empty cells are left out.
/// Errors  corrupt: no header, or a quote that is never closed.
[[nodiscard]] result<std::vector<record>> split_csv(std::string_view text,
                                                    const std::vector<std::string>& json_columns);

/// Where the value of a top-level member begins in an object's text; npos when it is not there.
[[nodiscard]] std::size_t find_member(std::string_view object, std::string_view key);

}  // namespace troupe
