#include "runtime/core/random.hpp"
#include "runtime/policy/budget.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <vector>

using namespace troupe;

namespace {

spending tokens(std::uint64_t input, std::uint64_t output) {
  spending s;
  s.tokens.input = input;
  s.tokens.output = output;
  s.calls = 1;
  return s;
}

spending money(double amount) {
  spending s;
  s.calls = 1;
  s.money = amount;
  return s;
}

constexpr auto granted = budget_answer::granted;
constexpr auto wait = budget_answer::wait;
constexpr auto spent = budget_answer::spent;

}  // namespace

TEST_CASE("nobody's calls are granted always", "[budget]") {
  budget_tree t;
  CHECK(t.reserve(0, tokens(1u << 30, 1u << 30)) == granted);
  t.settle(0, {}, {});
}

TEST_CASE("what is reserved counts until it is settled", "[budget]") {
  budget_tree t;
  auto run = t.add(0, {.tokens = 1'000}, "the run");
  REQUIRE(t.reserve(run, tokens(400, 200)) == granted);
  CHECK(t.reserve(run, tokens(400, 200)) == wait);
  t.settle(run, tokens(400, 200), tokens(100, 50));
  CHECK(t.spent(run) == tokens(100, 50));
  CHECK(t.reserve(run, tokens(400, 200)) == granted);
}

TEST_CASE("the last part is not lost: one call alone may exceed it", "[budget]") {
  budget_tree t;
  auto run = t.add(0, {.tokens = 1'000}, "the run");
  t.carry(run, tokens(990, 0));
  REQUIRE(t.reserve(run, tokens(400, 200)) == granted);
  t.settle(run, tokens(400, 200), tokens(400, 10));
  CHECK(t.reserve(run, tokens(1, 1)) == spent);
  CHECK(t.exhausted(run, "USD") == "the run's budget is spent: 1400 of 1000 tokens");
}

TEST_CASE("a child spends its parents' budgets too, and none of them is exceeded", "[budget]") {
  budget_tree t;
  auto batch = t.add(0, {.calls = 3}, "the batch");
  auto a = t.add(batch, {.calls = 2}, "run a");
  auto b = t.add(batch, {}, "run b");
  for (int i = 0; i < 2; ++i) {
    REQUIRE(t.reserve(a, money(0)) == granted);
    t.settle(a, money(0), money(0));
  }
  CHECK(t.reserve(a, money(0)) == spent);
  CHECK(t.exhausted(a, "USD") == "run a's budget is spent: 2 of 2 calls");
  REQUIRE(t.reserve(b, money(0)) == granted);
  CHECK(t.reserve(b, money(0)) == wait);
  t.settle(b, money(0), money(0));
  CHECK(t.reserve(b, money(0)) == spent);
  CHECK(t.exhausted(b, "USD") == "the batch's budget is spent: 3 of 3 calls");
}

TEST_CASE("what a refused call would have reserved is reserved nowhere", "[budget]") {
  budget_tree t;
  auto batch = t.add(0, {.tokens = 1'000}, "the batch");
  auto a = t.add(batch, {.calls = 1}, "run a");
  auto b = t.add(batch, {}, "run b");
  REQUIRE(t.reserve(b, tokens(300, 0)) == granted);
  REQUIRE(t.reserve(a, tokens(300, 0)) == granted);
  CHECK(t.reserve(a, tokens(300, 0)) == wait);
  CHECK(t.reserve(b, tokens(400, 0)) == granted);
}

TEST_CASE("a removed node's place is used again, its parent's spending stays", "[budget]") {
  budget_tree t;
  auto batch = t.add(0, {.money = 1}, "the batch");
  auto a = t.add(batch, {}, "a");
  REQUIRE(t.reserve(a, money(0.5)) == granted);
  t.settle(a, money(0.5), money(0.4));
  t.remove(a);
  auto b = t.add(batch, {}, "b");
  CHECK(b == a);
  CHECK(t.spent(b) == spending{});
  CHECK(t.spent(batch).money == 0.4);
}

TEST_CASE("many calls at once exceed a limit by no more than one reply", "[budget]") {
  rng random{3};
  for (int round = 0; round < 50; ++round) {
    budget_tree t;
    auto batch = t.add(0, {.tokens = 20'000, .money = 2}, "the batch");
    std::vector<budget_id> runs;
    for (int i = 0; i < 20; ++i)
      runs.push_back(t.add(batch, {.tokens = 5'000}, "a run"));
    struct open {
      budget_id run;
      spending most;
    };
    std::vector<open> under_way;
    std::size_t refused = 0;
    while (refused < 200) {
      auto run = runs[random.next() % runs.size()];
      spending most = tokens(500, 500);
      most.money = 0.2;
      auto answer = t.reserve(run, most);
      if (answer == granted)
        under_way.push_back({run, most});
      refused += answer == spent;
      if (!under_way.empty() && (answer != granted || random.uniform() < 0.3)) {
        std::swap(under_way[random.next() % under_way.size()], under_way.back());
        auto used = under_way.back().most;
        used.tokens.output = random.next() % 501;
        used.money *= random.uniform();
        t.settle(under_way.back().run, under_way.back().most, used);
        under_way.pop_back();
      }
      if (answer == wait && under_way.empty()) {  // then nothing is left to wait for
        auto again = t.reserve(run, most);
        REQUIRE(again != wait);
        if (again == granted)
          under_way.push_back({run, most});
      }
    }
    CHECK(t.spent(batch).tokens.total() < 20'000 + 1'000);
    CHECK(t.spent(batch).money < 2.2);
    for (auto run : runs)
      CHECK(t.spent(run).tokens.total() < 5'000 + 1'000);
  }
}

TEST_CASE("batch, job, run and child: none is exceeded by more than one reply, and all add up",
          "[budget]") {
  struct account {
    budget_id id = 0;
    std::uint64_t limit = 0;
    std::vector<std::size_t> up;  // itself and all above it
    std::uint64_t used = 0;
  };
  struct open {
    std::size_t payer;
    spending most;
  };
  rng random{11};
  auto below = [&](std::uint64_t n) { return random.next() % n; };
  for (int round = 0; round < 100; ++round) {
    budget_tree t;
    std::vector<account> all;
    auto add = [&](std::uint64_t limit, std::vector<std::size_t> up) {
      auto parent = up.empty() ? 0 : all[up.front()].id;
      up.insert(up.begin(), all.size());
      all.push_back({t.add(parent, {.tokens = limit}, "it"), limit, std::move(up)});
      return all.size() - 1;
    };
    auto batch = add(20'000 + below(20'000), {});
    for (int j = 0; j < 3; ++j) {
      auto job = add(below(2) * (4'000 + below(10'000)), all[batch].up);
      for (int r = 0; r < 4; ++r) {
        auto run = add(below(2) * (2'000 + below(4'000)), all[job].up);
        for (int c = 0; c < 2; ++c)
          add(below(2) * (500 + below(2'000)), all[run].up);
      }
    }
    constexpr std::uint64_t longest = 1'000;
    std::vector<open> under_way;
    auto settle_one = [&] {
      auto at = below(under_way.size());
      std::swap(under_way[at], under_way.back());
      auto used = under_way.back().most;
      used.tokens.output = below(used.tokens.output + 1);
      t.settle(all[under_way.back().payer].id, under_way.back().most, used);
      for (auto i : all[under_way.back().payer].up)
        all[i].used += used.tokens.total();
      under_way.pop_back();
    };
    for (int step = 0; step < 3'000; ++step) {
      auto payer = static_cast<std::size_t>(below(all.size()));
      auto most = tokens(1 + below(longest / 2), below(longest / 2));
      auto answer = t.reserve(all[payer].id, most);
      if (answer == granted)
        under_way.push_back({payer, most});
      if (answer == spent)  // only who has used it up, or one above, is told so
        CHECK(std::any_of(all[payer].up.begin(), all[payer].up.end(),
                          [&](auto i) { return all[i].limit > 0 && all[i].used >= all[i].limit; }));
      if (answer == wait)
        REQUIRE_FALSE(under_way.empty());  // nothing would ever wake it
      if (!under_way.empty() && (answer == wait || below(3) == 0))
        settle_one();
    }
    while (!under_way.empty())
      settle_one();
    for (auto& a : all) {
      CHECK(t.spent(a.id).tokens.total() == a.used);
      CHECK((a.limit == 0 || a.used < a.limit + longest));
    }
  }
}
