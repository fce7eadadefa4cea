#include "runtime/journal/schema.hpp"

#include "runtime/journal/journal.hpp"

#include <fmt/format.h>

namespace troupe {
namespace {

constexpr std::int64_t application_id = 0x74727031;  // "trp1"

// Events are a rowid table: appended at the end whatever run they belong to, so a commit touches
// few pages. The expression index finds the runs of a sample that have not ended.
constexpr const char* tables = R"sql(
CREATE TABLE events(
  run INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
  kind TEXT NOT NULL, payload TEXT NOT NULL,
  UNIQUE(run, seq));
CREATE INDEX events_by_sample ON events(
  CASE WHEN json_valid(payload) THEN json_extract(payload, '$.sample_id') END)
  WHERE kind = 'run_started';
CREATE TABLE results(
  sample_id TEXT NOT NULL, epoch INTEGER NOT NULL, run INTEGER NOT NULL,
  end TEXT NOT NULL, answer TEXT NOT NULL, answer_value TEXT NOT NULL, error TEXT NOT NULL,
  score REAL, score_note TEXT NOT NULL,
  turns INTEGER NOT NULL, snippets INTEGER NOT NULL, snippet_failures INTEGER NOT NULL,
  sandboxes INTEGER NOT NULL, tool_calls INTEGER NOT NULL, model_attempts INTEGER NOT NULL,
  tokens_input INTEGER NOT NULL, tokens_output INTEGER NOT NULL,
  tokens_cached INTEGER NOT NULL, tokens_reasoning INTEGER NOT NULL,
  tokens_cache_written INTEGER NOT NULL DEFAULT 0, tokens_untold INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL, wall_us INTEGER NOT NULL, model_wait_us INTEGER NOT NULL,
  sandbox_wall_us INTEGER NOT NULL, sandbox_cpu_us INTEGER NOT NULL, model TEXT NOT NULL,
  PRIMARY KEY(sample_id, epoch));
CREATE TABLE batch(
  id INTEGER PRIMARY KEY CHECK(id = 1),
  config TEXT NOT NULL, machine TEXT NOT NULL, started_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL, end TEXT NOT NULL, stats TEXT NOT NULL);
)sql";

result<std::int64_t> number(sqlite3* db, const char* sql) {
  auto query = statement::prepare(db, sql);
  if (!query)
    return fail(query.error());
  auto row = query->step();
  if (!row)
    return fail(row.error());
  return *row ? query->whole(0) : 0;
}

}  // namespace

result<std::int64_t> journal_version(sqlite3* db, const std::string& path) {
  auto id = number(db, "PRAGMA application_id");
  auto version = number(db, "PRAGMA user_version");
  auto objects = number(db, "SELECT count(*) FROM sqlite_schema");
  for (const auto* got : {&id, &version, &objects})
    if (!*got)
      return got->error().code == errc::corrupt
               ? fail(errc::corrupt, path
                                       + ": is not a troupe journal (not an SQLite database, or "
                                         "a damaged one)")
               : fail(got->error());
  if (*id == 0 && *version == 0 && *objects == 0)
    return 0;
  if (*id != application_id)
    return fail(errc::corrupt, path + ": is an SQLite database, but not a troupe journal");
  if (*version > journal::schema_version)
    return fail(errc::invalid_argument,
                fmt::format("{}: was written by a newer troupe (journal version {}, this one reads "
                            "up to {}): update troupe to read it",
                            path, *version, journal::schema_version));
  return *version;
}

result<void> create_schema(sqlite3* db) {
  auto sql = fmt::format("BEGIN IMMEDIATE; {} PRAGMA application_id={}; PRAGMA user_version={}; "
                         "COMMIT;",
                         tables, application_id, journal::schema_version);
  return execute(db, sql.c_str());
}

result<void> upgrade_schema(sqlite3* db, std::int64_t from) {
  std::string sql = "BEGIN IMMEDIATE; ";
  for (const auto& added : added_columns)
    if (from < added.version)
      sql +=
        fmt::format("ALTER TABLE results ADD COLUMN {} INTEGER NOT NULL DEFAULT 0; ", added.name);
  sql += fmt::format("PRAGMA user_version={}; COMMIT;", journal::schema_version);
  return execute(db, sql.c_str());
}

}  // namespace troupe
