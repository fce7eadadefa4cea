#include "runtime/journal/journal.hpp"

#include "runtime/journal/schema.hpp"
#include "runtime/journal/statement.hpp"
#include "runtime/journal/writer_lock.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr int busy_millis = 5'000;

constexpr std::string_view result_columns =
  "sample_id, epoch, run, end, answer, answer_value, error, score, score_note, turns, snippets, "
  "snippet_failures, sandboxes, tool_calls, model_attempts, tokens_input, tokens_output, "
  "tokens_cached, tokens_reasoning, tokens_cache_written, tokens_untold, started_at, wall_us, "
  "model_wait_us, sandbox_wall_us, sandbox_cpu_us, model";

/// What a journal of that version has for them.
std::string columns_of(std::int64_t version) {
  std::string out{result_columns};
  for (const auto& added : added_columns)
    if (version < added.version)
      out.replace(out.find(added.name), added.name.size(), "0");
  return out;
}

template <class Number>
std::int64_t signed_of(Number x) {
  return static_cast<std::int64_t>(x);
}

std::uint32_t small(statement& row, int column) {
  return static_cast<std::uint32_t>(row.whole(column));
}

std::uint64_t large(statement& row, int column) {
  return static_cast<std::uint64_t>(row.whole(column));
}

run_result result_from(statement& row) {
  run_result r;
  int c = 0;
  r.sample_id = row.text(c++);
  r.epoch = small(row, c++);
  r.run = run_id{large(row, c++)};
  r.end = row.text(c++);
  r.answer = row.text(c++);
  r.answer_value = json::parse(row.text(c++), nullptr, false);
  if (r.answer_value.is_discarded())
    r.answer_value = nullptr;
  r.error = row.text(c++);
  if (!row.is_null(c))
    r.score = row.real(c);
  r.score_note = row.text(++c);
  for (auto* count :
       {&r.turns, &r.snippets, &r.snippet_failures, &r.sandboxes, &r.tool_calls, &r.model_attempts})
    *count = small(row, ++c);
  for (auto* tokens : {&r.tokens.input, &r.tokens.output, &r.tokens.cached, &r.tokens.reasoning,
                       &r.tokens.cache_written, &r.tokens.untold})
    *tokens = large(row, ++c);
  r.started_at = row.whole(++c);
  for (auto* span : {&r.wall, &r.model_wait, &r.sandbox_wall, &r.sandbox_cpu})
    *span = micros{row.whole(++c)};
  r.model = row.text(++c);
  return r;
}

void bind_result(statement& put, const run_result& r, std::string_view answer_value) {
  int c = 0;
  put.bind(++c, std::string_view{r.sample_id});
  put.bind(++c, signed_of(r.epoch));
  put.bind(++c, signed_of(r.run.value));
  for (std::string_view text : {std::string_view{r.end}, std::string_view{r.answer}, answer_value,
                                std::string_view{r.error}})
    put.bind(++c, text);
  if (r.score)
    put.bind(++c, *r.score);
  else
    put.bind_null(++c);
  put.bind(++c, std::string_view{r.score_note});
  for (auto count :
       {r.turns, r.snippets, r.snippet_failures, r.sandboxes, r.tool_calls, r.model_attempts})
    put.bind(++c, signed_of(count));
  for (auto tokens : {r.tokens.input, r.tokens.output, r.tokens.cached, r.tokens.reasoning,
                      r.tokens.cache_written, r.tokens.untold})
    put.bind(++c, signed_of(tokens));
  put.bind(++c, r.started_at);
  for (auto span : {r.wall, r.model_wait, r.sandbox_wall, r.sandbox_cpu})
    put.bind(++c, signed_of(span.count()));
  put.bind(++c, std::string_view{r.model});
}

result<void> check_place(const std::string& path) {
  std::error_code failed;
  auto folder = fs::path{path}.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, failed))
    return fail(
      errc::not_found,
      fmt::format("{}: there is no folder {}; make it, or write elsewhere", path, folder.string()));
  if (fs::is_directory(path, failed))
    return fail(errc::denied, path + ": is a folder, not a journal");
  return {};
}

/// SQLite's log and our lock are files beside the journal, found by its name.
bool has_other_names(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && about.st_nlink > 1;
}

result<database> open_database(const std::string& name, int flags, const std::string& path) {
  sqlite3* raw = nullptr;
  auto code = sqlite3_open_v2(name.c_str(), &raw,
                              flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  database db{raw};
  if (!db)
    return fail(errc::unavailable, path + ": out of memory");
  if (code != SQLITE_OK) {
    auto number = sqlite3_system_errno(db.get());
    return fail(
      (code & 0xFF) == SQLITE_NOTADB ? errc::corrupt : errc::denied,
      fmt::format("{}: {}", path, number != 0 ? errno_text(number) : sqlite3_errmsg(db.get())));
  }
  sqlite3_busy_timeout(db.get(), busy_millis);
  return db;
}

/// A URI that SQLite reads as a file nobody changes: for media where it cannot keep its index.
std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (auto c : fs::absolute(path).string())
    if (c == '%' || c == '?' || c == '#')
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      uri += c;
  return uri + "?immutable=1";
}

}  // namespace

struct journal::impl {
  std::string path;
  std::optional<writer_lock> lock;  // before `db`: released after it is closed
  database db;
  std::int64_t version = schema_version;  // of the file; what is written has today's
  std::optional<statement> begin, commit, put_event, put_result, put_batch;

  result<void> keep(std::optional<statement>& slot, std::string_view sql) const {
    auto made = statement::prepare(db.get(), sql);
    if (!made)
      return fail(made.error());
    slot.emplace(std::move(*made));
    return {};
  }

  result<void> prepare_writes() {
    auto parameters = std::string{"?"};
    for (auto c : result_columns)
      if (c == ',')
        parameters += ",?";
    for (auto& [slot, sql] :
         std::initializer_list<std::pair<std::optional<statement>*, std::string>>{
           {&begin, "BEGIN IMMEDIATE"},
           {&commit, "COMMIT"},
           {&put_event, "INSERT INTO events(run, seq, at, kind, payload) VALUES(?,?,?,?,?) "
                        "ON CONFLICT(run, seq) DO NOTHING"},
           {&put_result, fmt::format("INSERT INTO results({}) VALUES({}) "
                                     "ON CONFLICT(sample_id, epoch) DO NOTHING",
                                     result_columns, parameters)},
           {&put_batch,
            "INSERT OR REPLACE INTO batch(id, config, machine, started_at, ended_at, end, "
            "stats) VALUES(1,?,?,?,?,?,?)"}})
      if (auto done = keep(*slot, sql); !done)
        return done;
    return {};
  }

  result<void> write(const journal_event& e) {
    put_event->bind(1, signed_of(e.run.value));
    put_event->bind(2, signed_of(e.seq));
    put_event->bind(3, e.at);
    put_event->bind(4, std::string_view{e.kind});
    put_event->bind(5, std::string_view{e.payload});
    return put_event->run();
  }

  result<void> write(const run_result& r) {
    auto value = dump_json(r.answer_value);
    bind_result(*put_result, r, value);
    return put_result->run();
  }

  result<void> write_all(const std::vector<journal_entry>& entries) {
    for (const auto& entry : entries) {
      for (const auto& event : entry.events)
        if (auto done = write(event); !done)
          return done;
      if (entry.result)
        if (auto done = write(*entry.result); !done)
          return done;
    }
    return {};
  }

  /// Runs `work` in one transaction; when anything fails, nothing of it stays.
  template <class Work>
  result<void> transact(Work work) {
    if (!begin)
      return fail(errc::denied, path + ": is open for reading only");
    auto done = begin->run();
    if (done)
      done = work();
    if (done)
      done = commit->run();
    if (!done && sqlite3_get_autocommit(db.get()) == 0)
      sqlite3_exec(db.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    return done;
  }

  /// Calls `each` for every row of a query with one optional parameter.
  template <class Bind, class Each>
  result<void> query(std::string_view sql, Bind bind, Each each) const {
    auto select = statement::prepare(db.get(), sql);
    if (!select)
      return fail(select.error());
    bind(*select);
    while (true) {
      auto row = select->step();
      if (!row)
        return fail(row.error());
      if (!*row)
        return {};
      each(*select);
    }
  }
};

journal::journal(std::unique_ptr<impl> i) : impl_{std::move(i)} {}

journal::~journal() {
  if (!impl_->begin)
    return;
  for (auto* kept :
       {&impl_->begin, &impl_->commit, &impl_->put_event, &impl_->put_result, &impl_->put_batch})
    kept->reset();
  // Leaves one file without its log and index. A reader in between keeps them: no harm.
  sqlite3_busy_timeout(impl_->db.get(), 0);
  sqlite3_exec(impl_->db.get(), "PRAGMA journal_mode=DELETE", nullptr, nullptr, nullptr);
}

result<std::unique_ptr<journal>> journal::open(const std::string& path) {
  if (auto ok = check_place(path); !ok)
    return fail(ok.error());
  if (::access(path.c_str(), F_OK) == 0 && ::access(path.c_str(), R_OK | W_OK) != 0)
    return fail(errc::denied, fmt::format("{}: {}", path, errno_text(errno)));
  if (has_other_names(path))
    return fail(errc::denied, path
                                + ": has a second name (a hard link), by which another process "
                                  "could write it unseen; copy it, or write elsewhere");
  auto lock = writer_lock::take(path);
  if (!lock)
    return fail(lock.error());
  auto db = open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, path);
  if (!db)
    return fail(db.error());
  auto made = std::make_unique<impl>();
  made->path = path;
  made->lock.emplace(std::move(*lock));
  made->db = std::move(*db);
  auto version = journal_version(made->db.get(), path);
  if (!version)
    return fail(version.error());
  if (auto done = execute(made->db.get(), "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
      !done)
    return fail(done.error());
  if (*version < schema_version)
    if (auto done =
          *version == 0 ? create_schema(made->db.get()) : upgrade_schema(made->db.get(), *version);
        !done)
      return fail(done.error());
  if (auto done = made->prepare_writes(); !done)
    return fail(done.error());
  return std::unique_ptr<journal>{new journal{std::move(made)}};
}

result<std::unique_ptr<journal>> journal::open_readonly(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0)
    return fail(errno == ENOENT || errno == ENOTDIR ? errc::not_found : errc::denied,
                fmt::format("{}: {}", path, errno_text(errno)));
  if (auto ok = check_place(path); !ok)
    return fail(ok.error());
  auto made = std::make_unique<impl>();
  made->path = path;
  result<std::int64_t> version = 0;
  for (const auto& name : {path, immutable_uri(path)}) {
    auto db =
      open_database(name, SQLITE_OPEN_READONLY | (name == path ? 0 : SQLITE_OPEN_URI), path);
    if (!db)
      return fail(db.error());
    made->db = std::move(*db);
    version = journal_version(made->db.get(), path);
    // Without a log to be read, a folder that cannot take SQLite's index is no obstacle.
    if (version || version.error().code != errc::denied
        || ::access((path + "-wal").c_str(), F_OK) == 0)
      break;
  }
  if (!version)
    return fail(version.error());
  if (*version == 0)
    return fail(errc::corrupt, path + ": is empty, not a troupe journal");
  made->version = *version;
  return std::unique_ptr<journal>{new journal{std::move(made)}};
}

result<void> journal::append(const std::vector<journal_entry>& entries) {
  return impl_->transact([&] { return impl_->write_all(entries); });
}

result<void> journal::put_batch(const batch_record& record) {
  return impl_->transact([&]() -> result<void> {
    if (record.forget_errors)
      if (auto done = execute(impl_->db.get(), "DELETE FROM results WHERE \"end\" = 'error'");
          !done)
        return done;
    auto& put = *impl_->put_batch;
    put.bind(1, std::string_view{record.config});
    put.bind(2, std::string_view{record.machine});
    put.bind(3, record.started_at);
    put.bind(4, record.ended_at);
    put.bind(5, std::string_view{record.end});
    put.bind(6, std::string_view{record.stats});
    return put.run();
  });
}

result<batch_record> journal::batch() const {
  batch_record record;
  auto done = impl_->query(
    "SELECT config, machine, started_at, ended_at, end, stats FROM batch", [](statement&) {},
    [&](statement& row) {
      record = {row.text(0), row.text(1), row.whole(2), row.whole(3), row.text(4), row.text(5)};
    });
  if (!done)
    return fail(done.error());
  return record;
}

result<run_id> journal::last_run() const {
  run_id last;
  auto done = impl_->query(
    "SELECT max(coalesce((SELECT max(run) FROM events), 0), "
    "coalesce((SELECT max(run) FROM results), 0))",
    [](statement&) {}, [&](statement& row) { last.value = large(row, 0); });
  if (!done)
    return fail(done.error());
  return last;
}

result<std::vector<run_result>> journal::results() const {
  std::vector<run_result> all;
  auto done = impl_->query(
    fmt::format("SELECT {} FROM results ORDER BY sample_id, epoch", columns_of(impl_->version)),
    [](statement&) {}, [&](statement& row) { all.push_back(result_from(row)); });
  if (!done)
    return fail(done.error());
  return all;
}

result<std::vector<run_id>> journal::runs_of(const std::string& sample_id) const {
  std::vector<run_id> runs;
  auto done = impl_->query(
    "SELECT run FROM events WHERE kind = 'run_started' AND "
    "CASE WHEN json_valid(payload) THEN json_extract(payload, '$.sample_id') END = ?1 "
    "UNION SELECT run FROM results WHERE sample_id = ?1 ORDER BY run DESC",
    [&](statement& q) { q.bind(1, std::string_view{sample_id}); },
    [&](statement& row) { runs.push_back(run_id{large(row, 0)}); });
  if (!done)
    return fail(done.error());
  return runs;
}

result<std::vector<journal_event>> journal::events(run_id run) const {
  std::vector<journal_event> all;
  auto done = impl_->query(
    "SELECT seq, at, kind, payload FROM events WHERE run = ? ORDER BY seq",
    [&](statement& q) { q.bind(1, signed_of(run.value)); },
    [&](statement& row) {
      all.push_back({run, small(row, 0), row.whole(1), row.text(2), row.text(3)});
    });
  if (!done)
    return fail(done.error());
  return all;
}

}  // namespace troupe
