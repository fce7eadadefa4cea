// Runs within a program's own Boost.Asio: co_await, several at once, a deadline that cancels.
// usage: 04_asio MODEL, e.g. mock/mock.json beside this file
#include <troupe/asio.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstdio>
#include <variant>

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;

namespace {

asio::awaitable<int> talk(troupe::runtime& rt, const troupe::agent& agent) {
  // One after the other, in this coroutine.
  auto first = co_await troupe::async_run(rt, agent, "Say a word.", asio::use_awaitable);
  std::printf("first: %s %s\n", first.end.c_str(), first.text.c_str());

  // Two at once.
  auto [a, b] = co_await (troupe::async_run(rt, agent, "Say a word.", asio::use_awaitable)
                          && troupe::async_run(rt, agent, "Say a word.", asio::use_awaitable));
  std::printf("both: %s %s\n", a.text.c_str(), b.text.c_str());

  // Whichever is first: the timer's end cancels the run, whose model call is dropped with it.
  asio::steady_timer deadline{co_await asio::this_coro::executor, 200ms};
  auto race = co_await (troupe::async_run(rt, agent, "Think for long.", asio::use_awaitable)
                        || deadline.async_wait(asio::use_awaitable));
  std::printf("race: %s\n", race.index() == 1 ? "the deadline" : "the run");
  co_return first.ok() && a.ok() && b.ok() && race.index() == 1 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  auto rt = troupe::runtime::start({.model = argc > 1 ? argv[1] : "mock/mock.json"});
  if (!rt)
    return std::fprintf(stderr, "%s\n", rt.error().detail.c_str()), 1;
  auto agent = rt->define({.name = "talker", .kind = "tool"});
  if (!agent)
    return std::fprintf(stderr, "%s\n", agent.error().detail.c_str()), 1;

  asio::io_context io;
  int code = 1;
  asio::co_spawn(io, talk(*rt, *agent),
                 [&](std::exception_ptr failed, int done) { code = failed ? 1 : done; });
  io.run();  // a run that goes on counts as work
  return code;
}
