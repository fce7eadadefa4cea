#include "runtime/journal/reply_cache.hpp"

#include "runtime/journal/statement.hpp"

#include <filesystem>

namespace troupe {
namespace {

constexpr std::int64_t application = 0x74726331;  // "trc1"
constexpr std::int64_t version = 1;
constexpr int busy_ms = 10'000;

constexpr const char* pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;";

constexpr const char* schema = R"(
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS replies(
  key TEXT NOT NULL, draw INTEGER NOT NULL, kept_at INTEGER NOT NULL, reply TEXT NOT NULL,
  PRIMARY KEY(key, draw)) WITHOUT ROWID;
PRAGMA application_id = 1953653553;
PRAGMA user_version = 1;
COMMIT;
)";
static_assert(application == 1953653553 && version == 1);

result<std::int64_t> number_of(sqlite3* db, const char* pragma) {
  auto ask = statement::prepare(db, pragma);
  if (!ask)
    return fail(ask.error());
  if (auto row = ask->step(); !row)
    return fail(row.error());
  return ask->whole(0);
}

result<void> check_or_make(sqlite3* db, const std::string& path) {
  auto whose = number_of(db, "PRAGMA application_id");
  auto newest = number_of(db, "PRAGMA user_version");
  auto tables = number_of(db, "SELECT count(*) FROM sqlite_master");
  if (!whose || !newest || !tables)
    return fail(!whose ? whose.error() : !newest ? newest.error() : tables.error());
  if (*tables == 0)
    return execute(db, schema);
  if (*whose != application)
    return fail(errc::corrupt, path + " is a database, but no cache of replies: name another file");
  if (*newest > version)
    return fail(errc::invalid_argument,
                path + " was made by a newer version of troupe: use that one, or another file");
  return {};
}

}  // namespace

struct reply_cache::impl {
  impl(database d, statement f, statement k)
    : db{std::move(d)}, find{std::move(f)}, keep{std::move(k)} {}

  database db;  // first: the statements end before it
  statement find;
  statement keep;
  bool open = false;  ///< a transaction is
};

reply_cache::reply_cache(std::unique_ptr<impl> i) : impl_{std::move(i)} {}

reply_cache::~reply_cache() {
  static_cast<void>(commit());
}

result<std::unique_ptr<reply_cache>> reply_cache::open(const std::string& path) {
  std::error_code ec;
  if (auto folder = std::filesystem::path{path}.parent_path(); !folder.empty())
    std::filesystem::create_directories(folder, ec);
  if (ec)
    return fail(errc::denied, "the cache's folder cannot be made: " + path + ": " + ec.message());
  sqlite3* raw = nullptr;
  auto opened = sqlite3_open(path.c_str(), &raw);
  database db{raw};
  if (opened != SQLITE_OK)
    return fail(sqlite_error(raw).code,
                "the cache " + path + " cannot be opened: " + sqlite3_errmsg(raw));
  sqlite3_busy_timeout(raw, busy_ms);
  if (auto made = check_or_make(raw, path); !made)
    return fail(made.error());
  if (auto set = execute(raw, pragmas); !set)
    return fail(set.error());
  auto find = statement::prepare(
    raw, "SELECT reply FROM replies WHERE key = ?1 AND draw = ?2 AND kept_at >= ?3");
  auto keep = statement::prepare(
    raw, "INSERT OR REPLACE INTO replies(key, draw, kept_at, reply) VALUES(?1, ?2, ?3, ?4)");
  if (!find || !keep)
    return fail(!find ? find.error() : keep.error());
  return std::unique_ptr<reply_cache>{
    new reply_cache{std::make_unique<impl>(std::move(db), *std::move(find), *std::move(keep))}};
}

result<std::optional<std::string>> reply_cache::find(std::string_view key, std::uint32_t draw,
                                                     std::int64_t since) {
  auto& ask = impl_->find;
  ask.bind(1, key);
  ask.bind(2, static_cast<std::int64_t>(draw));
  ask.bind(3, since);
  auto row = ask.step();
  std::optional<std::string> text;
  if (row && *row)
    text = ask.text(0);
  ask.reset();
  if (!row)
    return fail(row.error());
  return text;
}

result<void> reply_cache::keep(std::string_view key, std::uint32_t draw, std::string_view text,
                               std::int64_t now) {
  if (!impl_->open) {
    if (auto begun = execute(impl_->db.get(), "BEGIN IMMEDIATE"); !begun)
      return begun;
    impl_->open = true;
  }
  auto& put = impl_->keep;
  put.bind(1, key);
  put.bind(2, static_cast<std::int64_t>(draw));
  put.bind(3, now);
  put.bind(4, text);
  return put.run();
}

result<void> reply_cache::commit() {
  if (!impl_->open)
    return {};
  auto done = execute(impl_->db.get(), "COMMIT");
  if (!done)
    static_cast<void>(execute(impl_->db.get(), "ROLLBACK"));
  impl_->open = false;
  return done;
}

}  // namespace troupe
