#include "runtime/journal/statement.hpp"

#include <fmt/format.h>

namespace troupe {
namespace {

errc kind_of(int code) {
  switch (code & 0xFF) {
  case SQLITE_FULL:
  case SQLITE_IOERR:
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
  case SQLITE_NOMEM:
    return errc::unavailable;
  case SQLITE_PERM:
  case SQLITE_READONLY:
  case SQLITE_AUTH:
  case SQLITE_CANTOPEN:
    return errc::denied;
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
    return errc::corrupt;
  default:
    return errc::internal;
  }
}

std::string_view mend_of(int code) {
  switch (code & 0xFF) {
  case SQLITE_FULL:
    return "; free some space, nothing of this write was kept";
  case SQLITE_BUSY:
    return "; another process holds the file";
  case SQLITE_CORRUPT:
    return "; keep a copy, and try sqlite3's .recover";
  default:
    return "";
  }
}

}  // namespace

error sqlite_error(sqlite3* db) {
  auto code = sqlite3_extended_errcode(db);
  const auto* file = sqlite3_db_filename(db, "main");
  auto text = fmt::format("{}: {}", file == nullptr ? "journal" : file, sqlite3_errmsg(db));
  if (auto number = sqlite3_system_errno(db); number != 0 && (code & 0xFF) != SQLITE_FULL)
    text += fmt::format(" ({})", errno_text(number));
  return {kind_of(code), text + std::string{mend_of(code)}};
}

result<void> execute(sqlite3* db, const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return fail(sqlite_error(db));
  return {};
}

result<statement> statement::prepare(sqlite3* db, std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  auto code = sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()),
                                 SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK)
    return fail(sqlite_error(db));
  return statement{raw};
}

void statement::bind(int i, std::string_view text) {
  // A null pointer would bind NULL, and an empty view may have one.
  sqlite3_bind_text64(raw(), i, text.empty() ? "" : text.data(), text.size(), SQLITE_STATIC,
                      SQLITE_UTF8);
}

result<bool> statement::step() {
  auto code = sqlite3_step(raw());
  if (code == SQLITE_ROW)
    return true;
  if (code == SQLITE_DONE)
    return false;
  auto failed = sqlite_error(sqlite3_db_handle(raw()));
  reset();
  return fail(std::move(failed));
}

result<void> statement::run() {
  auto row = step();
  reset();
  if (!row)
    return fail(row.error());
  return {};
}

std::string statement::text(int column) {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(raw(), column));
  return bytes == nullptr
           ? std::string{}
           : std::string{bytes, static_cast<std::size_t>(sqlite3_column_bytes(raw(), column))};
}

}  // namespace troupe
