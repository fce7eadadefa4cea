#include "runtime/policy/fair_queue.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>

using namespace troupe;

namespace {

/// Calls of job j have ids j * 1'000'000 + n.
void fill(fair_queue& q, job_share from, std::uint64_t calls) {
  for (std::uint64_t i = 0; i < calls; ++i)
    q.push(from, from.job * 1'000'000 + i, false);
}

std::array<int, 4> turns(fair_queue& q, int n, double cost = 1) {
  std::array<int, 4> by_job{};
  for (int i = 0; i < n && !q.empty(); ++i) {
    ++by_job[q.next() / 1'000'000];
    q.pop(cost);
  }
  return by_job;
}

}  // namespace

TEST_CASE("a job's calls go in order, and a retry goes first", "[fair_queue]") {
  fair_queue q;
  q.push({1}, 10, false);
  q.push({1}, 11, false);
  q.push({1}, 12, true);
  for (std::uint64_t want : {12u, 10u, 11u}) {
    CHECK(q.next() == want);
    q.pop(1);
  }
  CHECK(q.empty());
  CHECK(q.size() == 0);
}

TEST_CASE("jobs get turns by their weights, however many calls they have", "[fair_queue]") {
  fair_queue q;
  fill(q, {1, 1}, 10'000);
  fill(q, {2, 3}, 900);
  auto got = turns(q, 800);
  CHECK(got[1] >= 199);
  CHECK(got[1] <= 201);
}

TEST_CASE("a turn counts by what it takes", "[fair_queue]") {
  fair_queue q;
  fill(q, {1}, 1'000);
  fill(q, {2}, 1'000);
  std::array<double, 3> taken{};
  for (int i = 0; i < 600; ++i) {
    auto job = q.next() / 1'000'000;
    auto cost = job == 1 ? 10.0 : 1.0;
    taken[job] += cost;
    q.pop(cost);
  }
  CHECK(taken[1] / taken[2] > 0.95);
  CHECK(taken[1] / taken[2] < 1.05);
}

TEST_CASE("a job that comes late gets its part from then on, and no more", "[fair_queue]") {
  fair_queue q;
  fill(q, {1}, 1'000);
  turns(q, 500);
  fill(q, {2}, 400);
  auto got = turns(q, 100);
  CHECK(got[1] == 50);
  CHECK(got[2] == 50);
}

TEST_CASE("a job that runs empty at each turn gets no more than its part", "[fair_queue]") {
  fair_queue q;
  fill(q, {1}, 1'000);
  std::array<int, 4> got{};
  std::uint64_t id = 2'000'000;
  q.push({2}, id, false);
  for (int i = 0; i < 200; ++i) {
    auto job = q.next() / 1'000'000;
    ++got[job];
    q.pop(1);
    if (job == 2)
      q.push({2}, ++id, false);
  }
  CHECK(got[1] >= 99);
  CHECK(got[2] >= 99);
}
