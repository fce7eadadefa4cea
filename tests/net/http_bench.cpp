// Hidden: net_test "[.bench]" prints what calls cost the client on loopback keep-alive: CPU,
// memory, and the time from the ask to the request's first byte.
#include "tests/net/http_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

long long since_boot(time_point t) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count();
}

/// Answers "/hold" when it is destroyed, "/held" with the number of those, "/probe" at once, with
/// the nanoseconds since the time that its header "x-asked" gives.
class holding_server {
public:
  explicit holding_server(reactor& io)
    : server_{serve(io, [this](const server_request& q, http_server::respond_fn respond) {
        on_request(q, std::move(respond));
      })} {}

  [[nodiscard]] std::uint16_t port() const { return server_->port(); }

private:
  void on_request(const server_request& q, http_server::respond_fn respond) {
    if (q.target == "/hold") {
      held_.push_back(std::move(respond));
      return;
    }
    server_response r;
    long long asked = 0;
    for (const auto& [name, value] : q.headers)
      if (name == "x-asked")
        std::from_chars(value.data(), value.data() + value.size(), asked);
    r.body = q.target == "/held" ? std::to_string(held_.size())
                                 : std::to_string(since_boot(steady_clock::now()) - asked);
    respond(std::move(r));
  }

  std::vector<http_server::respond_fn> held_;
  std::unique_ptr<http_server> server_;
};

double resident_mb() {
  std::ifstream status{"/proc/self/status"};
  for (std::string text; std::getline(status, text);)
    if (text.starts_with("VmRSS:"))
      return std::stod(text.substr(6)) / 1024;
  return 0;
}

/// Four servers in a process of their own: both ends in one would take all its descriptors.
class other_process {
public:
  other_process() {
    std::array<int, 2> ports_pipe{}, life_pipe{};
    REQUIRE(::pipe(ports_pipe.data()) == 0);
    REQUIRE(::pipe(life_pipe.data()) == 0);
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      ::close(life_pipe[1]);
      serve_until_closed(ports_pipe[1], life_pipe[0]);
    }
    ::close(ports_pipe[1]);
    ::close(life_pipe[0]);
    life_ = life_pipe[1];
    REQUIRE(::read(ports_pipe[0], ports.data(), sizeof ports) == sizeof ports);
    ::close(ports_pipe[0]);
  }
  ~other_process() {
    ::close(life_);
    ::waitpid(child_, nullptr, 0);
  }
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;

  std::array<std::uint16_t, 4> ports{};

private:
  [[noreturn]] static void serve_until_closed(int ports_out, int life) {
    reactor io;
    std::array<holding_server, 4> servers{holding_server{io}, holding_server{io},
                                          holding_server{io}, holding_server{io}};
    std::array<std::uint16_t, 4> numbers{};
    for (std::size_t i = 0; i < servers.size(); ++i)
      numbers[i] = servers[i].port();
    char byte = 0;
    if (::write(ports_out, numbers.data(), sizeof numbers) == sizeof numbers)
      static_cast<void>(::read(life, &byte, 1));
    ::_exit(0);
  }

  pid_t child_ = -1;
  int life_ = -1;
};

void allow_many_descriptors() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

TEST_CASE("what a call costs on loopback", "[.bench]") {
  for (int wide : {1, 64}) {
    measure(2'000, 20'000, wide);
    measure(200'000, 2'000, wide);
  }
}

TEST_CASE("what 10 000 calls in flight to 4 endpoints take", "[.bench]") {
  constexpr std::size_t calls = 10'000;
  allow_many_descriptors();
  other_process servers;
  reactor io;
  auto before = resident_mb();
  auto cpu_before = cpu_of(io);
  http_client client{io, {.max_connections = calls + 10}};
  auto body = std::make_shared<const std::string>(2'000, 'x');
  for (std::size_t i = 0; i < calls; ++i) {
    auto r = post(local(servers.ports[i % 4]), *body, "/hold");
    client.send(std::move(r), soon(std::chrono::minutes{10}), [](auto&&) {});
  }
  auto held = [&] {
    int all = 0;
    for (auto port : servers.ports)
      all += std::stoi(good(fetch(client, get(local(port), "/held"))).body);
    return all;
  };
  while (held() < static_cast<int>(calls))
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  std::printf("%zu calls in flight: %.0f MB resident, of which %.0f MB before; %.1f us CPU of the "
              "reactor for each connection made and request sent\n",
              calls, resident_mb(), before, (cpu_of(io) - cpu_before) / calls);
}

TEST_CASE("how soon a request leaves with 1000 in flight", "[.bench]") {
  constexpr int probes = 4'000;
  allow_many_descriptors();
  other_process servers;
  reactor io;
  http_client client{io, {.max_connections = 1'100}};
  for (int i = 0; i < 1'000; ++i)
    client.send(post(local(servers.ports[0]), std::string(2'000, 'x'), "/hold"),
                soon(std::chrono::minutes{10}), [](auto&&) {});
  std::vector<double> micros_taken;
  for (int i = 0; i < probes; ++i) {
    auto r = post(local(servers.ports[1]), std::string(2'000, 'x'), "/probe");
    r.headers.emplace_back("x-asked", std::to_string(since_boot(steady_clock::now())));
    micros_taken.push_back(std::stod(good(fetch(client, std::move(r))).body) / 1e3);
  }
  std::sort(micros_taken.begin(), micros_taken.end());
  std::printf("from ask to the server's handler, 1000 in flight: p50 %.0f us, p99 %.0f us, most "
              "%.0f us\n",
              micros_taken[probes / 2], micros_taken[probes * 99 / 100], micros_taken.back());
}
