// The proxy's own look-ups, of a name that every machine's hosts file has.
#include "runtime/net/egress_dialer.hpp"
#include "runtime/net/reactor.hpp"

#include <catch2/catch_test_macros.hpp>

#include <future>

using namespace troupe;
using namespace std::chrono_literals;

TEST_CASE("a name's addresses are those of both families, IPv4 first", "[egress]") {
  reactor io;
  auto dialer = system_dialer(io);
  std::promise<result<egress_dialer::addresses>> told;
  std::shared_ptr<void> handle;
  io.post([&] {
    handle = dialer.resolve("localhost", [&](auto found) { told.set_value(std::move(found)); });
  });
  auto answer = told.get_future();
  REQUIRE(answer.wait_for(10s) == std::future_status::ready);
  auto found = answer.get();
  REQUIRE(found);
  REQUIRE_FALSE(found->empty());
  CHECK(found->front().is_v4());
  for (auto& address : *found)
    CHECK(address.is_loopback());
  io.stop();
}

TEST_CASE("a look-up that nobody holds tells nobody", "[egress]") {
  reactor io;
  auto dialer = system_dialer(io);
  std::atomic<bool> told{false};
  std::promise<void> asked;
  io.post([&] {
    dialer.resolve("localhost", [&](auto) { told = true; });  // the handle goes at once
    asked.set_value();
  });
  asked.get_future().wait();
  std::promise<void> later;
  io.in(200ms, [&] { later.set_value(); });
  later.get_future().wait();
  CHECK_FALSE(told);
  io.stop();
}
