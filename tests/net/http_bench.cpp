// Hidden: net_test "[.bench]" prints what a call costs the client's reactor on loopback keep-alive.
#include "tests/net/http_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdio>

#include <time.h>

using namespace troupe;
using namespace troupe::test;

namespace {

/// CPU microseconds that the reactor's thread has used.
double cpu_of(reactor& io) {
  std::promise<double> cpu;
  io.post([&] {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    cpu.set_value(static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3);
  });
  return cpu.get_future().get();
}

double cpu_here() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

/// Keeps `wide` calls going until `total` have ended; each is sent from the last one's answer.
class load {
public:
  load(http_client& client, url to, std::size_t bytes, int total)
    : client_{client}, to_{std::move(to)}, left_{total} {
    body_ = std::make_shared<const std::string>(bytes, 'x');
  }

  void run(int wide) {
    open_ = wide;
    for (int i = 0; i < wide; ++i)
      next();
    ended_.get_future().wait();
  }

private:
  void next() {
    if (--left_ < 0) {
      if (--open_ == 0)
        ended_.set_value();
      return;
    }
    http_request r;
    r.to = to_;
    r.target = "/v1/chat/completions";
    r.headers = {{"authorization", "Bearer sk-0123456789"}, {"content-type", "application/json"}};
    r.owners = {body_};
    auto half = body_->size() / 2;
    r.body = {std::string_view{*body_}.substr(0, half), std::string_view{*body_}.substr(half)};
    client_.send(std::move(r), soon(patience), [this](const answer& a) {
      if (!a)
        std::printf("failed: %s\n", a.error().what.detail.c_str());
      next();
    });
  }

  http_client& client_;
  url to_;
  std::shared_ptr<const std::string> body_;
  std::atomic<int> left_;
  std::atomic<int> open_{0};
  std::promise<void> ended_;
};

void measure(std::size_t request_bytes, int calls, int wide) {
  reactor client_io;
  reactor server_io;
  auto server = http_server::listen(server_io, {}, [](server_request, const auto& respond) {
    server_response r;
    r.headers = {{"content-type", "application/json"}};
    r.body.assign(700, 'y');
    respond(std::move(r));
  });
  REQUIRE(server);
  http_client client{client_io, {}};
  load{client, local((*server)->port()), request_bytes, 200}.run(wide);
  auto client_before = cpu_of(client_io);
  auto server_before = cpu_of(server_io);
  auto here_before = cpu_here();
  auto start = steady_clock::now();
  load{client, local((*server)->port()), request_bytes, calls}.run(wide);
  auto wall = std::chrono::duration<double, std::micro>(steady_clock::now() - start).count();
  std::printf("%7zu-byte requests, %3d at once: client %6.1f us CPU per call, server %6.1f us, "
              "%8.0f calls/s, %llu connections\n",
              request_bytes, wide,
              (cpu_of(client_io) - client_before + cpu_here() - here_before) / calls,
              (cpu_of(server_io) - server_before) / calls, calls / wall * 1e6,
              static_cast<unsigned long long>(client.stats().connections_opened));
}

}  // namespace

TEST_CASE("what a call costs on loopback", "[.bench]") {
  for (int wide : {1, 64}) {
    measure(2'000, 20'000, wide);
    measure(200'000, 2'000, wide);
  }
}
