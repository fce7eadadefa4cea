#include "runtime/eval/report.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

run_result run_of(std::string sample, std::string end, std::optional<double> score) {
  static std::uint64_t next = 0;
  run_result r;
  r.run = run_id{++next};
  r.sample_id = std::move(sample);
  r.end = std::move(end);
  r.score = score;
  r.turns = 2;
  r.snippets = 2;
  r.snippet_failures = 1;
  r.sandboxes = 1;
  r.tool_calls = 3;
  r.model_attempts = 3;
  r.tokens = {1'000, 100, 50, 10};
  r.wall = micros{400'000};
  r.model_wait = micros{200'000};
  r.sandbox_wall = micros{20'000};
  r.sandbox_cpu = micros{10'000};
  r.model = "served-1";
  return r;
}

batch_record finished_batch() {
  return {
    R"({"options":{"model":{"value":"mock/x.json"},"agent":{"value":"code"},)"
    R"("scorer":{"value":"exact"},"max_concurrency":{"value":"64"}},)"
    R"("dataset":{"path":"d.jsonl","sha256":"0123456789abcdef","samples":4}})",
    R"({"cores":2,"memory_bytes":8000000000,"kernel":"Linux 6.1","executor":{"name":"jail"}})",
    1'700'000'000'000'000,
    1'700'000'010'000'000,
    "completed",
    R"({"process":{"cpu_user_s":0.3,"cpu_system_s":0.1,"max_rss_bytes":50000000},)"
    R"("model":{"calls":8,"retries":4},)"
    R"("sandboxes":{"opened":4,"closed_clean":4,"closed_unclean":0,"open_mean_ms":3.25}})"};
}

std::vector<run_result> four_runs() {
  auto failed = run_of("d", "error", std::nullopt);
  failed.error = "connection refused";
  return {run_of("a", "success", 1), run_of("b", "success", 0), run_of("c", "max_steps", 1),
          failed};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a report sums what was used and keeps ends apart", "[report]") {
  auto r = make_report(finished_batch(), four_runs());
  CHECK(r.runs == 4);
  CHECK(r.samples == 4);
  CHECK(r.elapsed_s == 10);
  CHECK(r.totals.tokens == token_usage{4'000, 400, 200, 40});
  CHECK(r.totals.turns == 8);
  CHECK(r.totals.snippet_failures == 4);
  CHECK(r.ends
        == std::map<std::string, std::uint64_t>{{"error", 1}, {"max_steps", 1}, {"success", 2}});
  CHECK(r.counts.limited == 1);
  CHECK(r.counts.errored == 1);
  CHECK(r.turn_wall_ms.p50 == 200);
  CHECK(r.turn_model_ms.mean == 100);
  CHECK(*r.cpu_us_per_turn == Catch::Approx(50'000));
  CHECK(r.server_models == std::vector<std::string>{"served-1"});
  CHECK(r.errors == std::vector<std::pair<std::string, std::uint64_t>>{{"connection refused", 1}});
}

TEST_CASE("the table shows accuracy with its error, ends, tokens, turns and sandboxes",
          "[report]") {
  auto text = to_text(make_report(finished_batch(), four_runs()));
  INFO(text);
  // Source: Python, statistics over [1, 0, 1] and [1, 0, 1, 0]; t quantile 4.302653 for 2 degrees.
  CHECK(
    has(text, "accuracy   0.667 \u00B1 0.333  (95 % CI 0.000 to 1.000), n = 3 samples, 1 epoch"));
  CHECK(has(text, "0.500 \u00B1 0.289"));
  CHECK(has(text, "n = 4 samples, with errors as wrong"));
  CHECK(has(text, "4 of 4 samples: 2 completed, 1 limited, 1 errored, 0 cancelled; 0 unscored"));
  CHECK(has(text, "ends       error 1, max_steps 1, success 2"));
  CHECK(has(text, "errors     1 x connection refused"));
  CHECK(has(text, "input 4 000 (cached 200), output 400 (reasoning 40); 1100 per run"));
  CHECK(has(text, "8 (2.0 per run), 12 model requests"));
  CHECK(has(text, "wall 200.0 ms mean"));
  CHECK(has(text, "CPU 50.0 ms of our process, 5.0 ms in sandboxes"));
  CHECK(has(text, "4 opened, 8 snippets, 4 failed (50.0 %), 12 tool calls"));
  CHECK(has(text, "closed clean 4, closed unclean 0, open mean 3.2 ms"));
  CHECK(has(text, "0.40 runs/s, 0.8 turns/s"));
  CHECK(has(text, "cores 2"));
  CHECK(has(text, "memory 8.0 GB"));
  CHECK(has(text, "mock/x.json (served-1 by the server's word)"));
  CHECK(has(text, "d.jsonl (sha256 0123456789ab)"));
  CHECK(has(text, "completed; began 2023-11-14 22:13:20 UTC, took 10.0 s"));
}

TEST_CASE("the JSON carries the same figures", "[report]") {
  auto j = to_json(make_report(finished_batch(), four_runs()));
  CHECK(j["runs"] == 4);
  CHECK(j["accuracy"]["errors_excluded"]["n"] == 3);
  CHECK(j["accuracy"]["errors_excluded"]["ci95"].size() == 2);
  CHECK(j["accuracy"]["errors_as_wrong"]["mean"] == 0.5);
  CHECK(j["accuracy"]["wilson95"].is_array());
  CHECK(j["counts"]["errored"] == 1);
  CHECK(j["totals"]["tokens"]["cached"] == 200);
  CHECK(j["per_turn"]["wall_ms"]["p50"] == 200);
  CHECK(j["stats"]["sandboxes"]["closed_clean"] == 4);
  CHECK(j["runs_per_s"] == 0.4);
}

TEST_CASE("a batch that was killed, or unscored, or empty still has a report", "[report]") {
  batch_record killed;
  killed.started_at = 1'000'000;
  auto one = run_of("a", "success", std::nullopt);
  one.started_at = 2'000'000;
  auto r = make_report(killed, {one});
  CHECK(r.elapsed_s == Catch::Approx(1.4));
  CHECK(!r.cpu_us_per_turn);
  auto text = to_text(r);
  CHECK(has(text, "running, or killed"));
  CHECK(has(text, "nothing was scored"));
  CHECK(has(text, "1 unscored"));
  CHECK(has(to_text(make_report({}, {})), "0 of 0 samples"));
  CHECK(to_json(make_report({}, {}))["accuracy"]["errors_excluded"].is_null());
}

TEST_CASE("a batch that was stopped says how much of it is done", "[report]") {
  auto batch = finished_batch();
  batch.end = "stopped";
  auto one = run_of("a", "success", 1);
  CHECK(has(to_text(make_report(batch, {one})), "1 of 4 samples: 1 completed"));
  batch.config = R"({"options":{"epochs":{"value":"3"}},"dataset":{"samples":4}})";
  CHECK(has(to_text(make_report(batch, {one})), "1 of 12 runs of 4 samples: 1 completed"));
  CHECK(to_json(make_report(batch, {one}))["planned"] == 12);
}

TEST_CASE("a batch of errors alone shows its accuracy as zero with errors as wrong", "[report]") {
  auto text = to_text(make_report(
    finished_batch(), {run_of("a", "error", std::nullopt), run_of("b", "error", std::nullopt)}));
  INFO(text);
  CHECK(has(text, "accuracy   0.000 \u00B1 0.000"));
  CHECK(has(text, "n = 2 samples, with errors as wrong"));
}

TEST_CASE("nothing in a journal can command the terminal", "[report]") {
  auto evil = run_of("a", "error\x1B[2J", std::nullopt);
  evil.error = "\x1B]0;title\a oops\n\nx";
  evil.model = "m\x1B[31m";
  auto batch = finished_batch();
  batch.end = "end\x1B[1m";
  batch.stats = R"({"x\u001b[1m":{"y\u001b[2m":"z\u001b[3m"}})";
  batch.machine = R"({"kernel":"\u001b[5mLinux"})";
  auto text = to_text(make_report(batch, {evil}));
  CHECK(text.find('\x1B') == std::string::npos);
  CHECK(has(text, "1 x  oops  x"));
}
