#include "runtime/model/mock_faults.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// The numbers, up to `most`, of the requests that something strikes.
std::vector<std::uint64_t> struck(const std::vector<fault_rule>& rules, std::uint64_t most,
                                  std::uint64_t seed = 1) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t n = 1; n <= most; ++n) {
    rng random{seed * 1000 + n};
    if (plan_fault(rules, n, 0ms, random))
      out.push_back(n);
  }
  return out;
}

mock_answer answer_of(std::vector<mock_piece> pieces, bool streamed) {
  mock_answer a;
  a.headers = {{"content-type", "application/json"}};
  a.pieces = std::move(pieces);
  a.streamed = streamed;
  return a;
}

mock_answer with(fault_kind kind, double at, mock_answer a) {
  apply_fault({kind, at, 250ms, {}}, "data: error\n\n", a);
  return a;
}

std::string body_of(const mock_answer& a) {
  std::string out;
  for (auto& p : a.pieces)
    out += p.bytes;
  return out;
}

const std::vector<mock_piece> events = {{"one.", 0us}, {"two.", 5us}, {"three", 5us}};

}  // namespace

TEST_CASE("every kind of fault has a name that leads back to it", "[faults]") {
  auto names = fault_kind_names();
  REQUIRE(names.size() == static_cast<std::size_t>(fault_kind::error_event) + 1);
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto kind = static_cast<fault_kind>(i);
    CHECK(to_string(kind) == names[i]);
    CHECK(fault_kind_from(names[i]) == kind);
  }
  CHECK(to_string(fault_kind::error_event) == "error_event");
  CHECK(to_string(fault_kind::reset) == "reset");
  CHECK(!fault_kind_from("resett"));
}

TEST_CASE("a fault strikes at its rate, and the same requests for the same seed", "[faults]") {
  std::vector<fault_rule> rules = {{.kind = fault_kind::cut, .rate = 0.3}};
  auto hits = struck(rules, 4000);
  CHECK(hits.size() > 1100);  // 1200, with a standard deviation of 29
  CHECK(hits.size() < 1300);
  CHECK(hits == struck(rules, 4000));
  CHECK(hits != struck(rules, 4000, 2));
}

TEST_CASE("a storm strikes so many requests of each so many", "[faults]") {
  auto hits = struck({{.rate = 1, .every = 10, .burst = 2}}, 25);
  CHECK(hits == std::vector<std::uint64_t>{1, 2, 11, 12, 21, 22});
}

TEST_CASE("a storm may be one of time", "[faults]") {
  std::vector<fault_rule> rules = {{.rate = 1, .every_span = 60s, .burst_span = 5s}};
  rng random{1};
  CHECK(plan_fault(rules, 1, 0ms, random));
  CHECK(plan_fault(rules, 1, 4999ms, random));
  CHECK(!plan_fault(rules, 1, 5000ms, random));
  CHECK(!plan_fault(rules, 1, 59'999ms, random));
  CHECK(plan_fault(rules, 1, 60'000ms, random));
}

TEST_CASE("the first rule that strikes wins, and draws do not depend on it", "[faults]") {
  std::vector<fault_rule> rules = {{.kind = fault_kind::reset, .rate = 1, .every = 2},
                                   {.kind = fault_kind::slow, .rate = 1, .pause = 7ms}};
  rng a{5};
  rng b{5};
  CHECK(plan_fault(rules, 1, 0ms, a)->kind == fault_kind::reset);
  auto second = plan_fault(rules, 2, 0ms, b);
  CHECK(second->kind == fault_kind::slow);
  CHECK(second->pause == 7ms);
  CHECK(a.next() == b.next());
}

TEST_CASE("a body is cut where the fault says", "[faults]") {
  auto plain = with(fault_kind::cut, 0.5, answer_of({{"0123456789"}}, false));
  CHECK(body_of(plain) == "01234");
  CHECK(plain.end == mock_answer::ending::cut);
  auto streamed = with(fault_kind::cut, 0.5, answer_of(events, true));
  CHECK(body_of(streamed) == "one.tw");
  CHECK(with(fault_kind::cut, 0, answer_of(events, true)).pieces.empty());
}

TEST_CASE("truncated JSON is a whole message, truncated events are whole events", "[faults]") {
  auto plain = with(fault_kind::truncated, 0.9, answer_of({{"0123456789"}}, false));
  CHECK(body_of(plain) == "012345678");
  CHECK(plain.end == mock_answer::ending::whole);
  CHECK(!plain.streamed);
  auto streamed = with(fault_kind::truncated, 0.5, answer_of(events, true));
  CHECK(body_of(streamed) == "one.");
  CHECK(streamed.end == mock_answer::ending::whole);
}

TEST_CASE("connections end without an answer, softly, hard, or after a while", "[faults]") {
  auto drop = with(fault_kind::drop, 0, answer_of(events, true));
  CHECK(drop.no_answer);
  CHECK(drop.end == mock_answer::ending::cut);
  CHECK(with(fault_kind::reset, 0, answer_of(events, true)).end == mock_answer::ending::reset);
  auto timeout = with(fault_kind::timeout, 0, answer_of(events, true));
  CHECK(timeout.no_answer);
  CHECK(timeout.hang == 250ms);
}

TEST_CASE("a page of HTML takes the place of the answer", "[faults]") {
  auto page = with(fault_kind::wrong_type, 0, answer_of(events, true));
  CHECK(page.status == 200);
  CHECK(page.headers == header_list{{"content-type", "text/html; charset=utf-8"}});
  CHECK(body_of(page).starts_with("<!DOCTYPE html>"));
}

TEST_CASE("a stall parts the body in two, slowness delays every piece", "[faults]") {
  auto stalled = with(fault_kind::stall, 0.5, answer_of({{"0123456789"}}, false));
  CHECK(stalled.streamed);
  CHECK(stalled.pieces == std::vector<mock_piece>{{"01234", 0us}, {"56789", 250ms}});
  auto slow = with(fault_kind::slow, 0.5, answer_of(events, true));
  REQUIRE(slow.pieces.size() == 3);
  CHECK(slow.pieces[0].wait == 250ms);
  CHECK(slow.pieces[1].wait == 250ms + 5us);
  auto drip = with(fault_kind::slow, 0.5, answer_of({{"0123456789abcdef"}}, false));
  CHECK(drip.pieces.size() == 8);
  CHECK(body_of(drip) == "0123456789abcdef");
}

TEST_CASE("an error event ends a stream after whole events", "[faults]") {
  auto answer = with(fault_kind::error_event, 0.7, answer_of(events, true));
  CHECK(body_of(answer) == "one.two.data: error\n\n");
  CHECK(answer.end == mock_answer::ending::whole);
}
