#include "runtime/host/bench_agents.hpp"

#include "runtime/agent/agent_machine.hpp"
#include "runtime/host/bench_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include <malloc.h>
#include <time.h>

namespace troupe {
namespace {

using namespace measure;

constexpr std::size_t live_runs = 100'000;

// --- the loop alone
// -------------------------------------------------------------------------------

double cpu_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

result<std::shared_ptr<const agent_definition>> long_runner() {
  agent_options o;
  o.prompts = shipped_prompts();
  o.tools = {final_answer_tool().spec};
  o.max_steps = 1000;
  return define_agent(std::move(o));
}

/// One turn: reply in, effect out, 1 KB of observation in, request out.
void turn(agent_machine& agent, int number) {
  model_replied said;
  said.reply.text = printing_reply();
  said.reply.finish_reason = "stop";
  (void)agent.on(said, {});
  snippet_done done;
  // Never the same twice: equal observations would end the run as stuck.
  done.outcome.logs = std::to_string(number) + std::string(1020, 'x');
  (void)agent.on(done, {});
}

/// Median over runs of the CPU of a turn, averaged over the last ten of `turns`.
double per_turn(const std::shared_ptr<const agent_definition>& agent, int turns, int runs,
                std::size_t history) {
  std::vector<double> all;
  for (int r = 0; r < runs; ++r) {
    agent_machine machine{agent, openai_codec().encoder(), run_id{1}};
    (void)machine.on(run_started{std::string(history, 't'), {}}, {});
    for (int t = 0; t < turns - 10; ++t)
      turn(machine, t);
    auto began = cpu_us();
    for (int t = turns - 10; t < turns; ++t)
      turn(machine, t);
    all.push_back((cpu_us() - began) / 10);
  }
  return quantile(all, 0.5);
}

result<std::string> bench_turns() {
  auto agent = long_runner();
  if (!agent)
    return fail(agent.error());
  (void)per_turn(*agent, 10, 100, 100);
  return line("CPU of a turn of the loop alone, at turn 10", us(per_turn(*agent, 10, 1000, 100)),
              "<= 25 us")
         + line("at turn 100", us(per_turn(*agent, 100, 200, 100)))
         + line("at turn 100, after 200 KB", us(per_turn(*agent, 100, 200, 200'000)), "<= 40 us");
}

// --- many alive at once
// ---------------------------------------------------------------------------

/// A model that answers nobody until so many ask at once; then all, and at once from there on.
class gate final : public endpoint {
public:
  explicit gate(std::size_t wanted) : wanted_{wanted} {}

  ticket ask(const model_request& request, time_point, seen_fn, done_fn done) override {
    std::vector<done_fn> all;
    {
      std::lock_guard lock{mutex_};
      auto mine = ++last_;
      if (open_) {
        all.push_back(std::move(done));
      } else {
        transcripts_ += request.messages.size;
        waiting_.push_back(std::move(done));
        if (waiting_.size() < wanted_)
          return mine;
        resident_ = resident_bytes();
        open_ = true;
        all.swap(waiting_);
      }
    }
    for (auto& one : all)
      one(reply());
    return 0;
  }

  void cancel(ticket) override {}
  message_encoder encoder() const override { return openai_codec().encoder(); }
  bool in_process() const override { return true; }

  /// When the last of them had asked.
  [[nodiscard]] std::uint64_t resident() const { return resident_; }
  [[nodiscard]] std::uint64_t transcripts() const { return transcripts_; }

private:
  static model_reply reply() {
    model_reply r;
    r.text = answering_reply();
    r.finish_reason = "stop";
    r.usage = {10, 5};
    return r;
  }

  std::mutex mutex_;
  std::vector<done_fn> waiting_;
  std::size_t wanted_;
  ticket last_ = 0;
  std::uint64_t resident_ = 0;
  std::uint64_t transcripts_ = 0;
  bool open_ = false;
};

result<std::string> bench_parked() {
  auto model = std::make_shared<gate>(live_runs);
  auto host = engine::start(
    wide_options(live_runs,
                 [&](http_client&, timers&) { return result<std::shared_ptr<endpoint>>{model}; }),
    [](reactor&) { return result<std::shared_ptr<executor>>{make_instant_executor(1024)}; },
    nullptr, {});
  if (!host)
    return fail(host.error());
  auto agent = long_runner();
  if (!agent)
    return fail(agent.error());
  auto shared = react_loop::start_of(**agent, model->encoder()).view().size;
  ::malloc_trim(0);  // what a bench before this one has freed is not this one's
  auto before = resident_bytes();
  auto r = run_load(**host, {live_runs, live_runs, 1});
  if (!r)
    return fail(r.error());
  auto each = [](std::uint64_t bytes) { return static_cast<double>(bytes) / live_runs; };
  auto own = each(model->transcripts()) - static_cast<double>(shared);
  return line("runs alive at once, all of which finished", std::to_string(live_runs))
         + line("memory of a parked run",
                fmt::format("{:.0f} bytes", each(model->resident() - before)))
         + line("of which its transcript, without the shared prompt",
                fmt::format("{:.0f} bytes", own))
         + line("beyond its transcript",
                fmt::format("{:.0f} bytes", each(model->resident() - before) - own), "<= 8192")
         + line("CPU of a run of one turn, start and end included",
                us(static_cast<double>(r->cpu.count()) / live_runs));
}

}  // namespace

result<std::string> bench_agents() {
  auto turns = bench_turns();
  if (!turns)
    return turns;
  auto parked = bench_parked();
  return parked ? result<std::string>{*turns + *parked} : parked;
}

}  // namespace troupe
