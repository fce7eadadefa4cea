#pragma once
// SQLite behind two small owners. Included by this folder's .cpp files only.

#include "runtime/core/error.hpp"

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace troupe {

struct close_database {
  void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};
using database = std::unique_ptr<sqlite3, close_database>;

/// What SQLite says about its last failure on `db`: the file, its words, the mend, and the kind a
/// caller can act on.
[[nodiscard]] error sqlite_error(sqlite3* db);

/// Runs statements without parameters or rows.
[[nodiscard]] result<void> execute(sqlite3* db, const char* sql);

/// A prepared statement, kept and used again. Resource.
class statement {
public:
  /// Errors  as sqlite_error.
  static result<statement> prepare(sqlite3* db, std::string_view sql);

  /// Binds parameter `i`, from 1. Text must stay alive until the next reset.
  void bind(int i, std::int64_t x) { sqlite3_bind_int64(raw(), i, x); }
  void bind(int i, double x) { sqlite3_bind_double(raw(), i, x); }
  void bind(int i, std::string_view text);
  void bind_null(int i) { sqlite3_bind_null(raw(), i); }

  /// Goes to the next row; false when there is none.
  [[nodiscard]] result<bool> step();

  /// Steps once and makes ready for new parameters.
  [[nodiscard]] result<void> run();

  void reset() noexcept { sqlite3_reset(raw()); }

  [[nodiscard]] std::int64_t whole(int column) { return sqlite3_column_int64(raw(), column); }
  [[nodiscard]] double real(int column) { return sqlite3_column_double(raw(), column); }
  [[nodiscard]] std::string text(int column);
  [[nodiscard]] bool is_null(int column) {
    return sqlite3_column_type(raw(), column) == SQLITE_NULL;
  }

private:
  struct finalize {
    void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
  };

  explicit statement(sqlite3_stmt* s) : owned_{s} {}
  [[nodiscard]] sqlite3_stmt* raw() noexcept { return owned_.get(); }

  std::unique_ptr<sqlite3_stmt, finalize> owned_;
};

}  // namespace troupe
