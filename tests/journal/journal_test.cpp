#include "runtime/journal/journal.hpp"
#include "tests/journal/journal_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <sqlite3.h>

#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
namespace fs = std::filesystem;

namespace {

void edit(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  CHECK(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

}  // namespace

TEST_CASE("what is appended is read back whole and in order", "[journal]") {
  temp_folder dir;
  auto r = result_of(7, "s/1", 2);
  r.answer_value = json{{"x", {1, 2.5, nullptr}}};
  r.error = "";
  r.score = 0.25;
  r.score_note = "note \xE2\x82\xAC";
  r.turns = 3;
  r.snippets = 4;
  r.snippet_failures = 1;
  r.sandboxes = 2;
  r.tool_calls = 5;
  r.model_attempts = 6;
  r.tokens = {100, 20, 30, 4};
  r.started_at = 1'700'000'000'000'000;
  r.wall = micros{11};
  r.model_wait = micros{12};
  r.sandbox_wall = micros{13};
  r.sandbox_cpu = micros{14};
  r.model = "m-2026";
  batch_record batch{"{\"a\":1}", "{\"cores\":2}", 5, 9, "completed", "{}"};
  {
    auto j = journal::open(dir / "out.db");
    REQUIRE(j);
    REQUIRE((*j)->append({{{event_of(7, 2, "action", "{\"code\":\"x\"}"), event_of(7, 1)}, r},
                          {{event_of(8, 1)}, std::nullopt}}));
    REQUIRE((*j)->put_batch(batch));
  }
  auto j = journal::open_readonly(dir / "out.db");
  REQUIRE(j);
  auto results = (*j)->results();
  REQUIRE(results);
  REQUIRE(results->size() == 1);
  const auto& got = results->front();
  CHECK(got.run == r.run);
  CHECK(got.sample_id == r.sample_id);
  CHECK(got.epoch == 2);
  CHECK(got.answer_value == r.answer_value);
  CHECK(got.score == 0.25);
  CHECK(got.score_note == r.score_note);
  CHECK(std::vector{got.turns, got.snippets, got.snippet_failures, got.sandboxes, got.tool_calls,
                    got.model_attempts}
        == std::vector<std::uint32_t>{3, 4, 1, 2, 5, 6});
  CHECK(got.tokens == r.tokens);
  CHECK(got.started_at == r.started_at);
  CHECK(std::vector{got.wall, got.model_wait, got.sandbox_wall, got.sandbox_cpu}
        == std::vector{micros{11}, micros{12}, micros{13}, micros{14}});
  CHECK(got.model == "m-2026");
  CHECK((*j)->events(run_id{7})
        == std::vector{event_of(7, 1), event_of(7, 2, "action", "{\"code\":\"x\"}")});
  CHECK((*j)->events(run_id{99})->empty());
  CHECK((*j)->last_run() == run_id{8});
  auto read = (*j)->batch();
  REQUIRE(read);
  CHECK(read->config == batch.config);
  CHECK(read->machine == batch.machine);
  CHECK(read->started_at == 5);
  CHECK(read->ended_at == 9);
  CHECK(read->end == "completed");
}

TEST_CASE("an unscored result stays unscored, a score of zero stays zero", "[journal]") {
  temp_folder dir;
  auto j = journal::open(dir / "out.db");
  REQUIRE(j);
  auto zero = result_of(1, "a");
  zero.score = 0.0;
  REQUIRE((*j)->append({{{}, zero}, {{}, result_of(2, "b")}}));
  auto results = (*j)->results();
  REQUIRE(results->size() == 2);
  CHECK((*results)[0].score == 0.0);
  CHECK(!(*results)[1].score);
  CHECK((*results)[1].answer_value.is_null());
}

TEST_CASE("the first result of a sample and epoch stays, and so does the first event of a place",
          "[journal]") {
  temp_folder dir;
  auto j = journal::open(dir / "out.db");
  REQUIRE(j);
  REQUIRE((*j)->append({{{event_of(1, 1, "first")}, result_of(1, "a")}}));
  REQUIRE((*j)->append({{{event_of(1, 1, "second")}, result_of(2, "a")}}));
  REQUIRE((*j)->append({{{}, result_of(3, "a", 2)}}));
  CHECK((*j)->results()->size() == 2);
  CHECK((*j)->results()->front().run == run_id{1});
  CHECK((*j)->events(run_id{1})->front().kind == "first");
}

TEST_CASE("runs of a sample are found while unfinished, newest first", "[journal]") {
  temp_folder dir;
  auto j = journal::open(dir / "out.db");
  REQUIRE(j);
  REQUIRE(
    (*j)->append({{{event_of(3, 1, "run_started", R"({"sample_id":"a"})")}, std::nullopt},
                  {{event_of(5, 1, "run_started", R"({"sample_id":"a"})")}, result_of(5, "a")},
                  {{event_of(6, 1, "run_started", R"({"sample_id":"b"})")}, std::nullopt},
                  {{event_of(7, 1, "run_started", "not json")}, std::nullopt},
                  {{}, result_of(2, "a", 2)}}));
  CHECK((*j)->runs_of("a") == std::vector{run_id{5}, run_id{3}, run_id{2}});
  CHECK((*j)->runs_of("c")->empty());
}

TEST_CASE("an empty journal has no runs, no results and an empty batch", "[journal]") {
  temp_folder dir;
  auto j = journal::open(dir / "out.db");
  REQUIRE(j);
  CHECK((*j)->last_run() == run_id{0});
  CHECK((*j)->results()->empty());
  CHECK((*j)->batch()->config.empty());
  CHECK((*j)->append({}));
}

TEST_CASE("a closed journal is one file", "[journal]") {
  temp_folder dir;
  {
    auto j = journal::open(dir / "out.db");
    REQUIRE((*j)->append({{{event_of(1, 1)}, std::nullopt}}));
    CHECK(fs::exists(dir / "out.db-wal"));
    CHECK(fs::exists(dir / "out.db.lock"));
  }
  CHECK(fs::exists(dir / "out.db"));
  for (auto rest : {"out.db-wal", "out.db-shm", "out.db.lock"})
    CHECK(!fs::exists(dir / rest));
  auto again = journal::open(dir / "out.db");
  REQUIRE(again);
  CHECK((*again)->events(run_id{1})->size() == 1);
}

TEST_CASE("a second writer is denied while the first lives, readers are not", "[journal]") {
  temp_folder dir;
  auto first = journal::open(dir / "out.db");
  REQUIRE(first);
  auto second = journal::open(dir / "out.db");
  REQUIRE(!second);
  CHECK(second.error().code == errc::denied);
  CHECK(second.error().detail.find("(pid " + std::to_string(::getpid()) + ") is writing it")
        != std::string::npos);
  auto reader = journal::open_readonly(dir / "out.db");
  REQUIRE(reader);
  REQUIRE((*first)->append({{{event_of(1, 1)}, std::nullopt}}));
  CHECK((*reader)->events(run_id{1})->size() == 1);
  auto written = (*reader)->append({{{event_of(1, 2)}, std::nullopt}});
  REQUIRE(!written);
  CHECK(written.error().code == errc::denied);
  first->reset();
  CHECK(journal::open(dir / "out.db"));
}

TEST_CASE("a journal with two names is not written", "[journal]") {
  temp_folder dir;
  REQUIRE(journal::open(dir / "out.db"));
  std::filesystem::create_hard_link(dir / "out.db", dir / "same.db");
  auto again = journal::open(dir / "same.db");
  REQUIRE(!again);
  CHECK(again.error().code == errc::denied);
  CHECK(again.error().detail.find("hard link") != std::string::npos);
  CHECK(journal::open_readonly(dir / "same.db"));
}

TEST_CASE("a file that is no journal is refused and left as it was", "[journal]") {
  temp_folder dir;
  std::string text = "question,answer\n" + std::string(2'000, 'x');
  std::ofstream{dir / "data.csv"} << text;
  for (auto open : {&journal::open, &journal::open_readonly}) {
    auto j = open(dir / "data.csv");
    REQUIRE(!j);
    CHECK(j.error().code == errc::corrupt);
    CHECK(j.error().detail.find("is not a troupe journal") != std::string::npos);
  }
  edit(dir / "other.db", "CREATE TABLE t(x); INSERT INTO t VALUES(1)");
  auto other = journal::open(dir / "other.db");
  REQUIRE(!other);
  CHECK(other.error().code == errc::corrupt);
  std::ifstream in{dir / "data.csv"};
  CHECK(std::string{std::istreambuf_iterator<char>{in}, {}} == text);
  CHECK(!fs::exists(dir / "data.csv.lock"));
}

TEST_CASE("a journal from a newer version says which", "[journal]") {
  temp_folder dir;
  REQUIRE(journal::open(dir / "out.db"));
  edit(dir / "out.db", "PRAGMA user_version = 7");
  for (auto open : {&journal::open, &journal::open_readonly}) {
    auto j = open(dir / "out.db");
    REQUIRE(!j);
    CHECK(j.error().code == errc::invalid_argument);
    CHECK(j.error().detail.find("newer troupe (journal version 7, this one reads up to 3)")
          != std::string::npos);
  }
}

TEST_CASE("a journal of an older version is read as it is, and written in today's form",
          "[journal]") {
  auto version = GENERATE(1, 2);
  temp_folder dir;
  auto old = result_of(1, "q1");
  old.tokens = {.input = 10, .output = 2, .cached = 4};
  {
    auto j = journal::open(dir / "out.db");
    REQUIRE(j);
    REQUIRE((*j)->append({{{}, old}}));
  }
  edit(dir / "out.db", "ALTER TABLE results DROP COLUMN tokens_untold");
  if (version == 1)
    edit(dir / "out.db", "ALTER TABLE results DROP COLUMN tokens_cache_written");
  edit(dir / "out.db", "PRAGMA user_version = " + std::to_string(version));
  auto read = journal::open_readonly(dir / "out.db");
  REQUIRE(read);
  auto found = (*read)->results();
  REQUIRE(found);
  REQUIRE(found->size() == 1);
  CHECK(found->front().tokens == old.tokens);

  auto written = result_of(2, "q2");
  written.tokens = {.input = 10, .cache_written = 7, .untold = 3};
  auto j = journal::open(dir / "out.db");
  REQUIRE(j);
  REQUIRE((*j)->append({{{}, written}}));
  auto all = (*j)->results();
  REQUIRE(all);
  REQUIRE(all->size() == 2);
  CHECK(all->at(0).tokens == old.tokens);
  CHECK(all->at(1).tokens == written.tokens);
}

TEST_CASE("a missing folder or file is named", "[journal]") {
  temp_folder dir;
  auto j = journal::open(dir / "no/out.db");
  REQUIRE(!j);
  CHECK(j.error().code == errc::not_found);
  CHECK(j.error().detail.find("there is no folder") != std::string::npos);
  auto r = journal::open_readonly(dir / "no.db");
  REQUIRE(!r);
  CHECK(r.error().code == errc::not_found);
  fs::create_directory(dir / "folder");
  CHECK(journal::open(dir / "folder").error().code == errc::denied);
  CHECK(journal::open_readonly(dir / "folder").error().code == errc::denied);
  std::ofstream{dir / "empty.db"}.close();
  CHECK(journal::open_readonly(dir / "empty.db").error().code == errc::corrupt);
  CHECK(journal::open(dir / "empty.db"));
}

TEST_CASE("a file without write permission is denied to a writer and open to a reader",
          "[journal]") {
  if (::geteuid() == 0)
    SKIP("root may write anywhere");
  temp_folder dir;
  REQUIRE(journal::open(dir / "out.db"));
  ::chmod((dir / "out.db").c_str(), 0444);
  CHECK(journal::open(dir / "out.db").error().code == errc::denied);
  CHECK(journal::open_readonly(dir / "out.db"));
}

TEST_CASE("names with characters that mean something in a URI are plain names", "[journal]") {
  temp_folder dir;
  auto name = dir / "a?b#c%20d.db";
  {
    auto j = journal::open(name);
    REQUIRE(j);
    REQUIRE((*j)->append({{{event_of(1, 1)}, std::nullopt}}));
  }
  CHECK(fs::exists(name));
  CHECK((*journal::open_readonly(name))->events(run_id{1})->size() == 1);
}

TEST_CASE("a damaged page is reported as corrupt, not as something else", "[journal]") {
  temp_folder dir;
  {
    auto j = journal::open(dir / "out.db");
    std::vector<journal_entry> many;
    for (std::uint32_t i = 1; i <= 500; ++i)
      many.push_back({{event_of(1, i, "action", std::string(200, 'x'))}, std::nullopt});
    REQUIRE((*j)->append(many));
  }
  std::fstream file{dir / "out.db", std::ios::in | std::ios::out | std::ios::binary};
  constexpr std::size_t two_pages = 8'192;
  file.seekp(two_pages);
  file << std::string(static_cast<std::size_t>(fs::file_size(dir / "out.db")) - two_pages, '\xAB');
  file.close();
  auto j = journal::open_readonly(dir / "out.db");
  REQUIRE(j);
  auto events = (*j)->events(run_id{1});
  REQUIRE(!events);
  CHECK(events.error().code == errc::corrupt);
}
