#include "runtime/host/bench_parts.hpp"

#include "runtime/agent/prompt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <future>

#include <sys/resource.h>

namespace troupe::measure {
namespace {

class instant_sandbox final : public sandbox {
public:
  explicit instant_sandbox(std::size_t bytes) : bytes_{bytes} {}

  void listen(output_fn, call_fn) override {}

  result<void> run(snippet code, done_fn done) override {
    snippet_outcome o;
    if (code.code.find("final_answer") != std::string::npos) {
      o.is_final = true;
      o.result = value{42, "42"};
    } else {
      // Never the same twice: equal observations would end the run as stuck.
      o.logs = std::to_string(++count_) + std::string(bytes_, 'x');
    }
    done(std::move(o));
    return {};
  }

  result<void> put(sandbox_file, put_fn) override { return nothing_there(); }
  result<void> get(std::string, std::size_t, got_fn) override { return nothing_there(); }
  result<void> shell(shell_command, shell_fn) override { return nothing_there(); }
  result<void> fork(std::vector<sandbox_limits>, forked_fn) override { return nothing_there(); }

  void answer(call_id, result<json>) override {}
  void interrupt() override {}

  void close(closed_fn done) override {
    close_report r;
    r.processes_gone = r.mounts_gone = true;
    if (done)
      done(r);
  }

  std::string_view isolation() const noexcept override { return "no code is run"; }

private:
  static result<void> nothing_there() {
    return fail(errc::denied, "this sandbox has no files and no programs");
  }

  std::size_t bytes_;
  std::uint64_t count_ = 0;
};

class instant_executor final : public executor {
public:
  explicit instant_executor(std::size_t bytes) : bytes_{bytes} {}

  void open(sandbox_spec, opened_fn done) override {
    done(std::make_shared<instant_sandbox>(bytes_));
  }
  executor_info info() const override { return {"instant", "no code is run", {}, ""}; }
  executor_stats stats() const override { return {}; }

private:
  std::size_t bytes_;
};

std::uint64_t status_bytes(std::string_view key) {
  std::ifstream status{"/proc/self/status"};
  std::string text;
  while (std::getline(status, text))
    if (text.starts_with(key))
      return std::stoull(text.substr(key.size())) * 1024;
  return 0;
}

std::shared_ptr<const tool_set> bench_tools() {
  auto tools = std::make_shared<tool_set>();
  if (auto added = tools->add(final_answer_tool()); !added)
    throw std::logic_error{added.error().detail};
  return tools;
}

}  // namespace

micros process_cpu() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  auto span = [](const timeval& t) { return std::chrono::seconds{t.tv_sec} + micros{t.tv_usec}; };
  return span(use.ru_utime) + span(use.ru_stime);
}

std::uint64_t resident_bytes() {
  return status_bytes("VmRSS:");
}

std::uint64_t peak_resident_bytes() {
  return status_bytes("VmHWM:");
}

double quantile(std::vector<double>& values, double p) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  auto rank = static_cast<std::size_t>(std::lround(p * static_cast<double>(values.size() - 1)));
  return values[rank];
}

std::shared_ptr<executor> make_instant_executor(std::size_t observation_bytes) {
  return std::make_shared<instant_executor>(observation_bytes);
}

std::string printing_reply() {
  return "Thought: I look at the next value before I decide.\n<code>\nprint(step())\n</code>";
}

std::string answering_reply() {
  return "Thought: that is all I need.\n<code>\nfinal_answer(42)\n</code>";
}

engine_options wide_options(std::size_t width, endpoint_maker model) {
  engine_options o;
  o.models.push_back({.endpoints = {{std::move(model)}}, .client = {.max_in_flight = width}});
  o.pool.max_sandboxes = width;
  o.http.max_connections = std::min<std::size_t>(width, 4096);
  return o;
}

result<load_result> run_load(engine& host, const load& how) {
  auto tools = bench_tools();
  agent_options agent;
  agent.prompts = shipped_prompts();
  agent.tools = tools->specs();
  agent.max_steps = how.turns + 1;
  auto defined = define_agent(std::move(agent));
  if (!defined)
    return fail(defined.error());

  batch_plan plan;
  for (std::size_t i = 0; i < how.runs; ++i)
    plan.items.push_back({"s" + std::to_string(i), 1, i});
  plan.max_concurrency = how.width;
  plan.agent = host.make_context(*defined, tools, {});
  plan.before.total = how.runs;
  plan.input = [](const batch_item&) {
    return std::pair{run_started{"Work through the values one by one.", {}},
                     std::vector<sandbox_file>{}};
  };
  std::atomic<std::uint64_t> turns{0};
  plan.score = [&](const batch_item&, run_result& r) { turns += r.turns; };
  std::promise<batch_outcome> over;
  plan.done = [&](batch_outcome o) { over.set_value(std::move(o)); };

  auto cpu = process_cpu();
  auto wall = steady_clock::now();
  auto batch = host.start_batch(std::move(plan));
  auto end = over.get_future().get();
  load_result out;
  out.cpu = process_cpu() - cpu;
  out.wall = std::chrono::duration_cast<micros>(steady_clock::now() - wall);
  out.turns = turns;
  out.failed = end.progress.failed;
  if (out.failed > 0)
    return fail(errc::internal, fmt::format("{} of {} runs failed", out.failed, how.runs));
  return out;
}

std::string us(double value) {
  return fmt::format("{:.1f} us", value);
}

std::string ms(double value_us) {
  return fmt::format("{:.2f} ms", value_us / 1000);
}

double since_us(time_point from) {
  return std::chrono::duration<double, std::micro>(steady_clock::now() - from).count();
}

std::string line(std::string_view label, const std::string& figure, std::string_view target) {
  return fmt::format("  {:<52} {:>14}{}\n", label, figure,
                     target.empty() ? "" : fmt::format("   (target {})", target));
}

}  // namespace troupe::measure
