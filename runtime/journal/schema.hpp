#pragma once
// The journal's tables, and how a database is known to be one.

#include "runtime/journal/statement.hpp"

#include <array>
#include <string_view>

namespace troupe {

/// The version of the journal in `db`, which this program can read; an empty database is not one
/// yet: 0.
/// Errors  corrupt (no journal), invalid_argument (newer version), or SQLite's.
[[nodiscard]] result<std::int64_t> journal_version(sqlite3* db, const std::string& path);

/// Makes the tables of an empty database, all or nothing.
[[nodiscard]] result<void> create_schema(sqlite3* db);

/// Brings a journal of version `from` to this program's, all or nothing.
[[nodiscard]] result<void> upgrade_schema(sqlite3* db, std::int64_t from);

/// A column of whole numbers that results did not have from the start.
struct added_column {
  std::int64_t version;
  std::string_view name;
};
inline constexpr std::array<added_column, 2> added_columns{
  {{2, "tokens_cache_written"}, {3, "tokens_untold"}}};

}  // namespace troupe
