#pragma once
// The journal's tables, and how a database is known to be one.

#include "runtime/journal/statement.hpp"

namespace troupe {

/// The version of the journal in `db`, which this program can read; an empty database is not one
/// yet: 0.
/// Errors  corrupt (no journal), invalid_argument (newer version), or SQLite's.
[[nodiscard]] result<std::int64_t> journal_version(sqlite3* db, const std::string& path);

/// Makes the tables of an empty database, all or nothing.
[[nodiscard]] result<void> create_schema(sqlite3* db);

/// Brings a journal of an older version to this program's, all or nothing.
[[nodiscard]] result<void> upgrade_schema(sqlite3* db);

}  // namespace troupe
