#pragma once
// The journal's tables, and how a database is known to be one.

#include "runtime/journal/statement.hpp"

namespace troupe {

/// Says whether `db` is a journal this program can read; an empty database is not one yet.
/// Errors  corrupt (no journal), invalid_argument (newer version), or SQLite's.
[[nodiscard]] result<bool> is_journal(sqlite3* db, const std::string& path);

/// Makes the tables of an empty database, all or nothing.
[[nodiscard]] result<void> create_schema(sqlite3* db);

}  // namespace troupe
