#include "runtime/host/bench_server.hpp"

#include "runtime/core/json.hpp"
#include "runtime/host/mock_server.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/reactor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <new>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace troupe::measure {
namespace {

std::int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
           steady_clock::now().time_since_epoch())
    .count();
}

/// Holds what it is asked, but for what says when it was asked.
class holding_server {
public:
  holding_server(reactor& io, std::atomic<std::uint64_t>& held) : count_{held} {
    auto made =
      http_server::listen(io, {}, [this](const server_request& q, http_server::respond_fn to) {
        on_request(q, std::move(to));
      });
    if (made)
      server_ = std::move(*made);
  }

  [[nodiscard]] std::uint16_t port() const { return server_ ? server_->port() : 0; }

private:
  void on_request(const server_request& q, http_server::respond_fn respond) {
    constexpr std::string_view mark = "asked:";
    auto arrived = nanoseconds_now();
    auto at = q.body.find(mark);
    if (at == std::string::npos) {
      held_.push_back(std::move(respond));
      ++count_;
      return;
    }
    std::int64_t asked = 0;
    std::from_chars(q.body.data() + at + mark.size(), q.body.data() + q.body.size(), asked);
    json choice{{"finish_reason", "stop"},
                {"message", {{"role", "assistant"}, {"content", std::to_string(arrived - asked)}}}};
    json reply{{"choices", json::array({std::move(choice)})}};
    respond({200, {{"content-type", "application/json"}}, dump_json(reply)});
  }

  std::atomic<std::uint64_t>& count_;
  std::vector<http_server::respond_fn> held_;
  std::unique_ptr<http_server> server_;
};

struct pipe_ends {
  int read = -1;
  int write = -1;
};

result<pipe_ends> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0)
    return fail(errc::unavailable, "a pipe cannot be made: " + errno_text(errno));
  return pipe_ends{ends[0], ends[1]};
}

}  // namespace

void bench_servers::serve(int ports_out, int lifeline, shared_count& held) {
  port_list ports{};
  auto script = mock_script::parse(R"({"default":"a short reply"})");
  auto mock = script ? mock_server::start(*std::move(script), {}) : fail(script.error());
  reactor io;
  std::vector<std::unique_ptr<holding_server>> all;
  for (std::size_t i = 0; i < holders; ++i)
    all.push_back(std::make_unique<holding_server>(io, held));
  ports[0] = mock ? (*mock)->port() : 0;
  for (std::size_t i = 0; i < holders; ++i)
    ports[1 + i] = all[i]->port();
  char byte = 0;
  if (::write(ports_out, ports.data(), sizeof ports) == sizeof ports)
    static_cast<void>(::read(lifeline, &byte, 1));  // ends when the other end closes
  ::_exit(0);
}

result<std::unique_ptr<bench_servers>> bench_servers::start() {
  auto told = make_pipe();
  auto life = told ? make_pipe() : fail(told.error());
  if (!life)
    return fail(life.error());
  auto* common = ::mmap(nullptr, sizeof(shared_count), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (common == MAP_FAILED)
    return fail(errc::unavailable, "no memory can be shared: " + errno_text(errno));
  auto out = std::unique_ptr<bench_servers>{new bench_servers};
  out->lifeline_ = life->write;
  out->held_ = new (common) shared_count{0};
  out->child_ = ::fork();
  if (out->child_ == 0) {
    ::close(life->write);
    serve(told->write, life->read, *out->held_);
  }
  ::close(told->write);
  ::close(life->read);
  auto& ports = out->ports_;
  auto read = out->child_ < 0 ? 0 : ::read(told->read, ports.data(), sizeof ports);
  ::close(told->read);
  if (read != sizeof ports || std::find(ports.begin(), ports.end(), 0) != ports.end())
    return fail(errc::unavailable, "the bench's servers did not start");
  return out;
}

bench_servers::~bench_servers() {
  ::close(lifeline_);
  if (child_ > 0)
    ::waitpid(child_, nullptr, 0);
  ::munmap(held_, sizeof(shared_count));
}

std::string bench_servers::url_of(std::uint16_t port) {
  return fmt::format("http://127.0.0.1:{}/v1", port);
}

micros bench_servers::cpu() const {
  clockid_t clock{};
  timespec t{};
  if (::clock_getcpuclockid(child_, &clock) != 0 || ::clock_gettime(clock, &t) != 0)
    return micros{0};
  return std::chrono::seconds{t.tv_sec} + micros{t.tv_nsec / 1000};
}

}  // namespace troupe::measure
