#include "runtime/host/bench.hpp"

#include "runtime/host/assemble.hpp"
#include "runtime/host/bench_agents.hpp"
#include "runtime/host/bench_jail.hpp"
#include "runtime/host/bench_models.hpp"
#include "runtime/host/bench_parts.hpp"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include <malloc.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using namespace measure;

constexpr std::uint32_t loop_turns = 10;
constexpr std::size_t observation_bytes = 1024;

double per(micros total, std::uint64_t n) {
  return n == 0 ? 0 : static_cast<double>(total.count()) / static_cast<double>(n);
}

endpoint_maker mock_with(mock_script script) {
  return [script = std::move(script)](http_client&, timers& clock) {
    return result<std::shared_ptr<endpoint>>{make_mock_endpoint(script, clock, 1)};
  };
}

mock_script ten_turns() {
  return mock_script::repeating(printing_reply(), loop_turns - 1, answering_reply());
}

engine::make_executor instant() {
  return [](reactor&) {
    return result<std::shared_ptr<executor>>{make_instant_executor(observation_bytes)};
  };
}

// --- the loop alone
// -------------------------------------------------------------------------------

result<load_result> loop_with(std::unique_ptr<journal> store, const load& how) {
  auto host =
    engine::start(wide_options(how.width, mock_with(ten_turns())), instant(), std::move(store), {});
  if (!host)
    return fail(host.error());
  if (auto warm = run_load(**host, {how.runs / 10 + 1, how.width, how.turns}); !warm)
    return fail(warm.error());
  return run_load(**host, how);
}

result<std::string> bench_loop() {
  auto r = loop_with(nullptr, {3000, 64, loop_turns});
  if (!r)
    return fail(r.error());
  return line("CPU per turn, mock model in process, 10 turns", us(per(r->cpu, r->turns)),
              "<= 50 us")
         + line("turns per second", fmt::format("{:.0f}", 1e6 / per(r->wall, r->turns)));
}

// --- the journal
// ----------------------------------------------------------------------------------

result<std::string> bench_journal() {
  auto plain = loop_with(nullptr, {3000, 64, loop_turns});
  auto path = std::filesystem::temp_directory_path() / fmt::format("troupe-bench-{}.db", getpid());
  auto store = journal::open(path.string());
  if (!plain || !store)
    return fail(plain ? store.error() : plain.error());
  auto kept = loop_with(std::move(*store), {3000, 64, loop_turns});
  for (const char* suffix : {"", "-wal", "-shm", ".lock"})
    std::filesystem::remove(path.string() + suffix);
  if (!kept)
    return fail(kept.error());
  auto without = per(plain->cpu, plain->turns), with = per(kept->cpu, kept->turns);
  return line("CPU per turn without a journal", us(without))
         + line("CPU per turn, every event durable first", us(with))
         + line("the journal's share", us(with - without));
}

// --- over HTTP
// ------------------------------------------------------------------------------------

micros thread_cpu_of(reactor& io) {
  std::promise<micros> answer;
  io.post([&] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    answer.set_value(std::chrono::seconds{t.tv_sec} + micros{t.tv_nsec / 1000});
  });
  return answer.get_future().get();
}

/// Answers like a model with ten turns: counts the assistant's messages in the request.
server_response canned_reply(const server_request& request) {
  constexpr std::string_view mark = "\"role\":\"assistant\"";
  std::uint32_t turn = 0;
  for (auto at = request.body.find(mark); at != std::string::npos;
       at = request.body.find(mark, at + mark.size()))
    ++turn;
  std::string body =
    R"({"id":"x","object":"chat.completion","model":"bench","choices":[{"index":0,)"
    R"("message":{"role":"assistant","content":)";
  append_json_string(body, turn + 1 < loop_turns ? printing_reply() : answering_reply());
  body +=
    R"(},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}})";
  return {200, {{"content-type", "application/json"}}, std::move(body)};
}

result<std::string> bench_http() {
  reactor server_io;
  auto server = http_server::listen(
    server_io, {}, [](const server_request& q, const http_server::respond_fn& answer) {
      answer(canned_reply(q));
    });
  if (!server)
    return fail(server.error());
  auto base = parse_url(fmt::format("http://127.0.0.1:{}/v1", (*server)->port()));
  if (!base)
    return fail(base.error());
  auto over_http = [&](http_client& client, timers&) {
    return result<std::shared_ptr<endpoint>>{
      make_http_endpoint(client, make_codec({}), {*base, "key"})};
  };
  auto host = engine::start(wide_options(64, over_http), instant(), nullptr, {});
  if (!host)
    return fail(host.error());
  if (auto warm = run_load(**host, {200, 64, loop_turns}); !warm)
    return fail(warm.error());
  auto server_before = thread_cpu_of(server_io);
  auto r = run_load(**host, {2000, 64, loop_turns});
  if (!r)
    return fail(r.error());
  auto server_cpu = thread_cpu_of(server_io) - server_before;
  auto stats = (*host)->http_stats();
  host->reset();
  server->reset();
  return line("client CPU per turn over loopback keep-alive",
              us(per(r->cpu - server_cpu, r->turns)), "<= 150 us")
         + line("the server's own CPU per turn, left out", us(per(server_cpu, r->turns)))
         + line("connections opened for all of it", std::to_string(stats.connections_opened));
}

// --- many at once
// ---------------------------------------------------------------------------------

result<std::string> bench_wide() {
  constexpr std::size_t runs = 10'000;
  auto script = mock_script::parse(fmt::format(
    R"({{"latency":{{"median_ms":1000,"sigma":0}},"rules":[{{"from_turn":{},"reply":{}}}],"default":{}}})",
    loop_turns - 1, dump_json(answering_reply()), dump_json(printing_reply())));
  if (!script)
    return fail(script.error());
  auto host =
    engine::start(wide_options(runs, mock_with(std::move(*script))), instant(), nullptr, {});
  if (!host)
    return fail(host.error());
  ::malloc_trim(0);  // what a bench before this one has freed is not this one's
  auto before = resident_bytes();
  auto r = run_load(**host, {runs, runs, loop_turns});
  if (!r)
    return fail(r.error());
  auto ideal = 1e6 * loop_turns;
  return line("10 000 runs at once, 10 turns, 1 s model: wall / ideal",
              fmt::format("{:.3f}", static_cast<double>(r->wall.count()) / ideal), "<= 1.2")
         + line("peak resident memory",
                fmt::format("{:.0f} MB", static_cast<double>(peak_resident_bytes()) / 1e6),
                "<= 200 MB")
         + line("of which before the runs",
                fmt::format("{:.0f} MB", static_cast<double>(before) / 1e6))
         + line("CPU per turn", us(per(r->cpu, r->turns)));
}

}  // namespace

const std::vector<bench>& benches() {
  static const std::vector<bench> all = {
    {"models", "model calls: CPU, memory, the way out", bench_models},
    {"agents", "what waiting agents cost, and the loop's share of a turn", bench_agents},
    {"loop", "the agent loop with a model in process", bench_loop},
    {"http", "the same over loopback HTTP, client side", bench_http},
    {"wide", "10 000 runs at once", bench_wide},
    {"journal", "what durability costs", bench_journal},
    {"jail", "sandboxes: start, round trip, teardown", bench_jail},
  };
  return all;
}

const bench* find_bench(std::string_view name) {
  for (const auto& b : benches())
    if (b.name == name)
      return &b;
  return nullptr;
}

std::string bench_heading() {
  auto m = machine_record(nullptr);
  return fmt::format("troupe {} ({}), {}, {} cores, {:.0f} GB, load {:.1f}\n",
                     string_or(m, "troupe"), string_or(m, "commit"), string_or(m, "kernel"),
                     m["cores"].get<int>(), m["memory_bytes"].get<double>() / 1e9,
                     m["load"].get<double>());
}

}  // namespace troupe
