// One endpoint's door against simulated rate limiters, in virtual time: how much of what the server
// allows is used, and how many requests are wasted.

#include "runtime/policy/admission.hpp"
#include "tests/support/limited_server.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdio>
#include <queue>

using namespace troupe;
using namespace std::chrono_literals;
using counting = test::server_limits::counting;

namespace {

constexpr time_point start{1h};

struct scenario {
  test::server_limits server;
  rate_settings told{};
  std::size_t most = 256;
  steady_clock::duration span = 10min;
  millis latency = 1s;
  double tokens = 1'000;  ///< mean of a call; they vary by a factor of two
  bool door = true;       ///< false: a client that only counts its places
};

struct figures {
  double used = 0;    ///< of what is allowed in that time, the first burst not counted
  double wasted = 0;  ///< of the requests sent, those refused by chance left out
  double admitted = 0;
};

/// As many calls as are let in, without an end.
class simulation {
public:
  explicit simulation(scenario s)
    : s_{s}, server_{s.server, start},
      door_{{.rates = s.told, .places = {.most = s.most}, .breaker = {}}} {}

  figures run() {
    auto until = start + s_.span;
    send(start);
    while (!ends_.empty() || wake_ != never) {
      auto now = std::min(ends_.empty() ? never : ends_.top().at, wake_);
      if (now >= until)
        break;
      if (now == wake_)
        wake_ = never;
      else
        finish(now);
      send(now);
    }
    auto minutes = std::chrono::duration<double>(s_.span).count() / 60;
    auto requests = static_cast<double>(server_.admitted);
    auto refused = static_cast<double>(server_.refused);
    return {std::max(requests / (s_.server.requests * minutes),
                     server_.admitted_tokens / (s_.server.tokens * minutes)),
            refused / (requests + refused), requests};
  }

private:
  struct under_way {
    time_point at;
    std::uint64_t id;
    admission::pass pass;
    try_end how;
    rate_report stated;
    bool operator<(const under_way& x) const { return at != x.at ? at > x.at : id > x.id; }
  };

  void send(time_point now) {
    while (true) {
      auto size = next_size();
      auto when = ready_at(size, now);
      if (when > now) {
        wake_ = std::min(wake_, when);
        return;
      }
      size_ = 0;
      auto pass = door_.start({size * 4, 0}, now);
      auto verdict = server_.ask(static_cast<double>(size), now);
      under_way u{now, ++id_, pass, {}, verdict.stated};
      if (verdict.refused) {
        u.at += 50ms;
        u.how = {failure_class::rate_limited, {}, verdict.wait};
      } else {
        u.at += std::chrono::duration_cast<millis>(s_.latency * (0.5 + random_.uniform()));
        u.how.used.input = size * 4 / 5;
        u.how.used.output = size - u.how.used.input;
      }
      ends_.push(std::move(u));
    }
  }

  time_point ready_at(std::size_t size, time_point now) {
    if (s_.door)
      return door_.ready_at({size * 4, 0}, now);
    return ends_.size() < s_.most ? now : never;
  }

  /// The call that waits; the same until it is sent.
  std::size_t next_size() {
    if (size_ == 0)
      size_ = static_cast<std::size_t>(s_.tokens * std::exp2(2 * random_.uniform() - 1) / 1.082);
    return size_;
  }

  void finish(time_point now) {
    auto& u = ends_.top();
    door_.end(u.pass, u.how, u.stated, now);
    ends_.pop();
  }

  scenario s_;
  test::limited_server server_;
  admission door_;
  rng random_{5};
  std::priority_queue<under_way> ends_;
  time_point wake_ = never;
  std::size_t size_ = 0;
  std::uint64_t id_ = 0;
};

void check(const char* what, const scenario& s, double least_used = 0.95,
           double most_wasted = 0.02) {
  auto f = simulation{s}.run();
  std::printf("%-62s used %5.1f %%  wasted %4.2f %%\n", what, f.used * 100, f.wasted * 100);
  CAPTURE(what);
  CHECK(f.used >= least_used);
  CHECK(f.wasted < most_wasted);
}

/// Against a client that takes no notice of refusals; what is learned depends on when the first
/// ones come, so the mean of some servers counts.
void check_noise(const char* what, scenario s, double least = 0.9) {
  constexpr std::uint64_t servers = 4;
  double ours = 0, most = 0;
  for (s.server.seed = 1; s.server.seed <= servers; ++s.server.seed) {
    s.door = true;
    ours += simulation{s}.run().admitted;
    s.door = false;
    most += simulation{s}.run().admitted;
  }
  std::printf("%-62s reaches %5.1f %% of %.0f\n", what, ours / most * 100,
              most / static_cast<double>(servers));
  CAPTURE(what);
  CHECK(ours >= least * most);
}

}  // namespace

TEST_CASE("a server that states its limits is used up and hardly ever refuses", "[admission]") {
  for (auto how : {counting::bucket, counting::window}) {
    auto name = how == counting::bucket ? "bucket" : "window";
    check(name, {.server = {.how = how, .requests = 600}});
    check("  tokens bind", {.server = {.how = how, .requests = 6'000, .tokens = 600'000}});
    check("  slow replies",
          {.server = {.how = how, .requests = 600}, .span = 30min, .latency = 20s});
    check("  fast", {.server = {.how = how, .requests = 6'000}});
    check("  small", {.server = {.how = how, .requests = 60}});
    check("  no Retry-After", {.server = {.how = how, .requests = 600, .asks_to_wait = false}});
    check("  big calls",
          {.server = {.how = how, .requests = 600, .tokens = 200'000}, .tokens = 6'000});
  }
}

TEST_CASE("limits that the user tells are kept to", "[admission]") {
  for (auto how : {counting::bucket, counting::window}) {
    auto name = how == counting::bucket ? "told, bucket" : "told, window";
    check(name, {.server = {.how = how, .requests = 600, .states = false}, .told = {600, 0}});
    check("  tokens bind",
          {.server = {.how = how, .requests = 6'000, .tokens = 600'000, .states = false},
           .told = {6'000, 600'000}});
    check("  small", {.server = {.how = how, .requests = 60, .states = false}, .told = {60, 0}});
    check("  too much is told",
          {.server = {.how = how, .requests = 600, .states = false}, .told = {1'200, 0}});
  }
}

// It takes a few refusals to learn, so these are looked at for longer.
TEST_CASE("limits that nobody states are learned from refusals", "[admission]") {
  for (auto how : {counting::bucket, counting::window}) {
    auto name = how == counting::bucket ? "unknown, bucket" : "unknown, window";
    test::server_limits silent{.how = how, .requests = 600, .states = false};
    auto with = [&](auto change) {
      scenario s{.server = silent, .span = 30min};
      change(s);
      return s;
    };
    check(name, with([](auto&) {}));
    check("  no Retry-After", with([](auto& s) { s.server.asks_to_wait = false; }));
    check("  tokens bind", with([](auto& s) {
            s.server.requests = 6'000;
            s.server.tokens = 600'000;
          }));
    check("  fast", with([](auto& s) { s.server.requests = 6'000; }));
    check("  slow replies", with([](auto& s) { s.latency = 10s; }));
    check("  30 % of the excess is refused", with([](auto& s) { s.server.refused_share = 0.3; }));
  }
}

TEST_CASE("refusals by chance do not slow callers down", "[admission]") {
  for (auto chance : {0.01, 0.05}) {
    scenario s{.server = {.requests = 1e9, .states = false, .chance = chance}, .most = 64};
    check_noise(chance < 0.02 ? "1 % by chance" : "5 % by chance", s);
    s.server.chance_wait = 1s;
    check_noise("  asks to wait for 1 s", s);
  }
}

TEST_CASE("a limit is found beneath refusals by chance", "[admission]") {
  for (auto how : {counting::bucket, counting::window})
    for (auto chance : {0.01, 0.05})
      for (auto requests : {600.0, 6'000.0})
        check(how == counting::bucket ? "noisy bucket" : "noisy window",
              {.server = {.how = how, .requests = requests, .states = false, .chance = chance},
               .span = 30min},
              0.9, 0.04);
}
