#include "runtime/host/bench_jail.hpp"

#include "executors/jail/jail_executor.hpp"
#include "runtime/core/memory.hpp"
#include "runtime/host/bench_beside.hpp"
#include "runtime/host/bench_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using namespace measure;

micros cpu_with_children() {
  rusage own{}, ended{};
  ::getrusage(RUSAGE_SELF, &own);
  ::getrusage(RUSAGE_CHILDREN, &ended);
  micros total{0};
  for (const auto& t : {own.ru_utime, own.ru_stime, ended.ru_utime, ended.ru_stime})
    total += std::chrono::seconds{t.tv_sec} + micros{t.tv_usec};
  return total;
}

std::size_t open_descriptors() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& fd : std::filesystem::directory_iterator{"/proc/self/fd"})
    ++n;
  return n;
}

sandbox_spec plain_spec(bool checkpoints) {
  sandbox_spec spec;
  spec.checkpoints = checkpoints;
  return spec;
}

using box = std::shared_ptr<sandbox>;

/// Blocking calls on one executor, for measuring alone.
class blocking_jail {
public:
  explicit blocking_jail(std::size_t ready = 0) : jail_{io_, options(ready)} {}

  result<box> open(bool checkpoints) {
    std::promise<result<box>> p;
    jail_.open(plain_spec(checkpoints), [&](auto opened) { p.set_value(std::move(opened)); });
    return p.get_future().get();
  }

  /// `n` sandboxes, all asked for at once.
  result<std::vector<box>> open_many(std::size_t n) {
    std::vector<std::future<result<box>>> waiting;
    for (std::size_t i = 0; i < n; ++i) {
      auto p = std::make_shared<std::promise<result<box>>>();
      waiting.push_back(p->get_future());
      auto spec = plain_spec(true);
      spec.limits.open_timeout = millis{120'000};
      jail_.open(std::move(spec), [p](auto opened) { p->set_value(std::move(opened)); });
    }
    std::vector<box> all;
    error failed;
    for (auto& w : waiting)
      if (auto opened = w.get(); opened)
        all.push_back(std::move(*opened));
      else
        failed = opened.error();
    if (all.size() < n)
      return fail(failed);
    return all;
  }

  result<snippet_outcome> run(sandbox& s, std::string code, millis hard = 30s) {
    std::promise<snippet_outcome> p;
    auto ran = s.run({std::move(code), false, never, io_.now() + hard},
                     [&](snippet_outcome o) { p.set_value(std::move(o)); });
    if (!ran)
      return fail(ran.error());
    return p.get_future().get();
  }

  /// Times `n` snippets, each sent from the end of the one before: the executor's own round trip,
  /// without the wake-up of another thread.
  result<void> chain(sandbox& s, int n, std::vector<double>& times) {
    std::promise<result<void>> over;
    std::function<void(int)> next = [&](int left) {
      if (left == 0) {
        over.set_value({});
        return;
      }
      auto sent = steady_clock::now();
      auto ran =
        s.run({"1+1", false, never, io_.now() + 30s}, [&, sent, left](const snippet_outcome&) {
          times.push_back(since_us(sent));
          next(left - 1);
        });
      if (!ran)
        over.set_value(fail(ran.error()));
    };
    io_.post([&] { next(n); });
    return over.get_future().get();
  }

  result<box> branch(sandbox& s) {
    std::promise<result<box>> p;
    auto forked = s.fork({{}}, [&](auto made) { p.set_value(std::move(made.front())); });
    if (!forked)
      return fail(forked.error());
    return p.get_future().get();
  }

  close_report close(sandbox& s) {
    std::promise<close_report> p;
    s.close([&](close_report r) { p.set_value(std::move(r)); });
    return p.get_future().get();
  }

  /// Starts, runs one snippet and ends sandboxes, `width` at a time, until `n` have lived.
  result<void> churn(std::size_t n, std::size_t width) {
    struct state {
      std::size_t left;
      std::size_t live = 0;
      std::string failure;
      std::promise<void> over;
    } s{n, 0, {}, {}};
    std::function<void()> next = [&] {
      if (s.left == 0 || !s.failure.empty()) {
        if (s.live == 0)
          s.over.set_value();
        return;
      }
      --s.left;
      ++s.live;
      auto ended = [&](const std::string& failure) {
        if (!failure.empty())
          s.failure = failure;
        --s.live;
        next();
      };
      jail_.open(plain_spec(false), [&, ended](result<box> opened) {
        if (!opened) {
          ended(opened.error().detail);
          return;
        }
        auto one = *opened;
        auto ran =
          one->run({"1+1", false, never, io_.now() + 30s}, [one, ended](const snippet_outcome& o) {
            one->close([ended, o](const close_report& r) {
              ended(r.clean() ? o.reason : "a close left something");
            });
          });
        if (!ran)
          ended(ran.error().detail);
      });
    };
    io_.post([&] {
      for (std::size_t i = 0; i < width; ++i)
        next();
    });
    s.over.get_future().get();
    if (!s.failure.empty())
      return fail(errc::internal, s.failure);
    return {};
  }

  [[nodiscard]] std::string isolation() const { return jail_.info().isolation; }
  [[nodiscard]] std::uint64_t unclean() const { return jail_.stats().unclean_closes; }

private:
  static jail_options options(std::size_t ready) {
    jail_options o;
    o.profiles.front().ready = ready;
    return o;
  }

  reactor io_;
  jail_executor jail_;
};

// --- one after another
// ---------------------------------------------------------------------------

/// Opens, runs 1+1; microseconds from the request to the result.
result<std::pair<box, double>> first_result(blocking_jail& jail, bool checkpoints = false) {
  auto from = steady_clock::now();
  auto opened = jail.open(checkpoints);
  if (!opened)
    return fail(opened.error());
  auto r = jail.run(**opened, "1+1");
  if (!r || r->end != snippet_end::ok)
    return fail(r ? error{errc::internal, "1+1: " + r->reason} : r.error());
  return std::pair{*opened, since_us(from)};
}

result<std::string> lives() {
  blocking_jail jail;
  std::vector<double> first, later, gone;
  for (int i = 0; i < 65; ++i) {
    auto one = first_result(jail);
    if (!one)
      return fail(one.error());
    if (i < 5) {  // the zygote has just started
      static_cast<void>(jail.close(*one->first));
      continue;
    }
    first.push_back(one->second);
    if (auto r = jail.chain(*one->first, 30, later); !r)
      return fail(r.error());
    auto from = steady_clock::now();
    static_cast<void>(jail.close(*one->first));
    gone.push_back(since_us(from));
  }
  auto text = "  isolation: " + jail.isolation() + "\n"
              + line("cold request to first result, p50", ms(quantile(first, 0.5)), "<= 5 ms")
              + line("later round trip, p50", us(quantile(later, 0.5)), "<= 100 us")
              + line("later round trip, p99", us(quantile(later, 0.99)))
              + line("kill to verified gone, p50", ms(quantile(gone, 0.5)), "<= 3 ms")
              + line("kill to verified gone, p99", ms(quantile(gone, 0.99)), "<= 30 ms");
  constexpr std::size_t n = 400;
  auto cpu = cpu_with_children();
  auto from = steady_clock::now();
  if (auto r = jail.churn(n, 4); !r)
    return fail(r.error());
  auto seconds = since_us(from) / 1e6;
  text += line("start-run-kill lives per second, 4 at a time", fmt::format("{:.0f}", n / seconds),
               ">= 200")
          + line("CPU of one life, runtime and sandbox",
                 ms(static_cast<double>((cpu_with_children() - cpu).count()) / n));
  return text + line("closes that left something", std::to_string(jail.unclean()), "0");
}

result<std::string> from_pool() {
  blocking_jail jail{4};
  std::vector<double> first;
  for (int i = 0; i < 40; ++i) {
    auto one = first_result(jail);
    if (!one)
      return fail(one.error());
    if (i > 0)
      first.push_back(one->second);
    static_cast<void>(jail.close(*one->first));
    std::this_thread::sleep_for(40ms);  // for the pool to fill again
  }
  return line("from the pool to first result, p50", ms(quantile(first, 0.5)), "<= 1 ms");
}

// --- checkpoints
// ----------------------------------------------------------------------------------

/// A session with `mib` of Python objects.
result<box> open_filled(blocking_jail& jail, int mib, bool checkpoints) {
  auto one = first_result(jail, checkpoints);
  if (!one)
    return fail(one.error());
  auto filled =
    jail.run(*one->first, fmt::format("heap = [str(i) * 8 for i in range({} * 9000)]", mib));
  if (!filled || filled->end != snippet_end::ok)
    return fail(filled ? error{errc::internal, filled->reason} : filled.error());
  return one->first;
}

/// A snippet leaves `mib` of objects alone.
result<std::string> checkpoints(int mib) {
  blocking_jail jail;
  auto opened = open_filled(jail, mib, true);
  if (!opened)
    return fail(opened.error());
  auto& s = **opened;
  std::vector<double> with, back;
  if (auto r = jail.chain(s, 100, with); !r)
    return fail(r.error());
  for (int i = 0; i < 15; ++i) {
    auto from = steady_clock::now();
    auto killed = jail.run(s, "while True: pass", 150ms);
    if (!killed || !killed->restored)
      return fail(killed ? error{errc::internal, "not restored: " + killed->reason}
                         : killed.error());
    back.push_back(since_us(from) - 150'000);
  }
  static_cast<void>(jail.close(s));
  return line(fmt::format("round trip with a checkpoint of {} MB, p50", mib),
              ms(quantile(with, 0.5)), mib == 10 ? "<= 3 ms" : "")
         + line(fmt::format("the same, p99", mib), ms(quantile(with, 0.99)))
         + line(fmt::format("hard deadline to restored, {} MB, p50", mib), ms(quantile(back, 0.5)));
}

// --- branches
// -------------------------------------------------------------------------------------

/// What a branch's interpreter shares with no other process, in KiB.
constexpr const char* own_memory = R"(
sum(int(line.split()[1]) for line in open("/proc/self/smaps_rollup") if line.startswith("Private_"))
)";

result<std::string> branches(int mib) {
  blocking_jail jail;
  auto opened = open_filled(jail, mib, false);  // a checkpoint would share what is counted
  if (!opened)
    return fail(opened.error());
  std::vector<double> times, own;
  for (int i = 0; i < 40; ++i) {
    auto from = steady_clock::now();
    auto made = jail.branch(**opened);
    if (!made)
      return fail(made.error());
    times.push_back(since_us(from));
    auto counted = jail.run(**made, own_memory);
    if (!counted || !counted->result)
      return fail(counted ? error{errc::internal, counted->reason} : counted.error());
    own.push_back(std::stod(counted->result->text) / 1024);
    static_cast<void>(jail.close(**made));
  }
  static_cast<void>(jail.close(**opened));
  return line(fmt::format("fork() of a session of {} MB to a live branch, p50", mib),
              ms(quantile(times, 0.5)))
         + line("the same, p99", ms(quantile(times, 0.99)))
         + line("memory of its own of such a branch, p50",
                fmt::format("{:.1f} MB", quantile(own, 0.5)));
}

// --- many at once
// ---------------------------------------------------------------------------------

result<std::string> crowd() {
  constexpr std::uint64_t each = 4u << 20;
  auto n = std::min<std::size_t>(2'000, available_memory() / each);
  blocking_jail jail;
  auto one = first_result(jail);
  if (!one)
    return fail(one.error());
  auto memory = available_memory();
  auto descriptors = open_descriptors();
  auto from = steady_clock::now();
  auto all = jail.open_many(n);
  if (!all)
    return fail(all.error());
  auto opened = since_us(from) / 1e6;
  auto held = static_cast<double>(memory) - static_cast<double>(available_memory());
  auto fds = static_cast<double>(open_descriptors() - descriptors);
  std::size_t answers = 0;
  for (const auto& s : *all)
    if (auto r = jail.run(*s, "6*7"); r && r->result && r->result->text == "42")
      ++answers;
  from = steady_clock::now();
  std::vector<std::future<void>> closing;
  for (const auto& s : *all) {
    auto p = std::make_shared<std::promise<void>>();
    closing.push_back(p->get_future());
    s->close([p](const close_report&) { p->set_value(); });
  }
  for (auto& c : closing)
    c.get();
  auto closed = since_us(from) / 1e6;
  auto count = static_cast<double>(n);
  return line(fmt::format("{} sandboxes alive at once: answered", n), std::to_string(answers))
         + line("memory of one, kernel's included", fmt::format("{:.2f} MB", held / count / 1e6),
                "<= 2 MB")
         + line("descriptors of the runtime for one", fmt::format("{:.2f}", fds / count), "<= 4")
         + line("opening all", fmt::format("{:.1f} s", opened))
         + line("ending all", fmt::format("{:.1f} s", closed))
         + line("closes that left something", std::to_string(jail.unclean()), "0");
}

}  // namespace

result<std::string> bench_jail() {
  std::string text;
  for (auto* part : {&lives, &from_pool}) {
    auto lines = (*part)();
    if (!lines)
      return lines;
    text += *lines;
  }
  for (int mib : {1, 10, 100}) {
    auto lines = checkpoints(mib);
    if (!lines)
      return lines;
    text += *lines;
  }
  for (int mib : {1, 10, 100}) {
    auto lines = branches(mib);
    if (!lines)
      return lines;
    text += *lines;
  }
  auto lines = crowd();
  if (!lines)
    return lines;
  return text + *lines + bench_beside();
}

}  // namespace troupe
