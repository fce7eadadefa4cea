#pragma once
// What the HTTP tests share: calls that wait for their answer, and a server that does as scripted.

#include "runtime/net/http.hpp"
#include "runtime/net/reactor.hpp"

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace troupe::test {

using answer = tl::expected<http_response, http_failure>;

/// Long enough for a loaded machine under sanitizers; no test waits it out.
inline constexpr std::chrono::seconds patience{30};

inline time_point soon(millis span) {
  return steady_clock::now() + span;
}

inline url local(std::uint16_t port, std::string scheme = "http") {
  return {std::move(scheme), "127.0.0.1", port, ""};
}

inline http_request post(url to, std::string body = "{}", std::string target = "/") {
  http_request r;
  r.to = std::move(to);
  r.target = std::move(target);
  auto owned = std::make_shared<const std::string>(std::move(body));
  r.body.emplace_back(*owned);
  r.owners.push_back(std::move(owned));
  return r;
}

inline http_request get(url to, std::string target = "/") {
  http_request r;
  r.method = "GET";
  r.to = std::move(to);
  r.target = std::move(target);
  return r;
}

/// One call whose answer is waited for. Fails the test when done comes twice.
class pending {
public:
  http_client::done_fn done() {
    return [s = state_](answer a) {
      if (s->calls++ == 0)
        s->promise.set_value(std::move(a));
    };
  }

  answer wait() {
    REQUIRE(future_.wait_for(patience) == std::future_status::ready);
    return future_.get();
  }

  [[nodiscard]] bool ready() const {
    return future_.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
  }
  [[nodiscard]] int calls() const { return state_->calls; }

private:
  struct state {
    std::promise<answer> promise;
    std::atomic<int> calls{0};
  };
  std::shared_ptr<state> state_ = std::make_shared<state>();
  std::future<answer> future_ = state_->promise.get_future();
};

inline answer fetch(http_client& client, http_request request, time_point deadline = never) {
  pending call;
  client.send(std::move(request), deadline, call.done());
  return call.wait();
}

/// Waits until `condition` holds; for what happens on another thread and calls nobody.
inline bool becomes(const std::function<bool()>& condition) {
  for (auto until = soon(patience); steady_clock::now() < until; std::this_thread::yield())
    if (condition())
      return true;
  return condition();
}

inline bool contains(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos)
    return true;
  UNSCOPED_INFO("'" << part << "' is not in '" << text << "'");
  return false;
}

/// REQUIRE for other threads than the test's, where Catch2's own is not safe.
inline void must(bool holds) {
  if (!holds)
    std::abort();
}

/// A listening socket whose every connection is handled by `script`, on a thread of its own.
class raw_server {
public:
  /// One accepted connection; blocking.
  class peer {
  public:
    explicit peer(int fd) : fd_{fd} {}
    ~peer();
    peer(const peer&) = delete;
    peer& operator=(const peer&) = delete;

    /// A request's header and body; "" when the client closed first.
    std::string read_request();
    void send(std::string_view bytes);
    void half_close();
    /// Reads until the client closes; returns the number of bytes that came.
    std::size_t drain();
    /// The same, and returns what came.
    std::string read_to_end();
    [[nodiscard]] int fd() const { return fd_; }

  private:
    friend class raw_server;
    int fd_;
  };
  using script_fn = std::function<void(peer&, int number)>;

  /// On 127.0.0.1, or on the unix socket `path` when one is given.
  explicit raw_server(script_fn script, const std::string& path = {});
  ~raw_server();
  raw_server(const raw_server&) = delete;
  raw_server& operator=(const raw_server&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int accepted() const { return accepted_; }

private:
  void accept_all();

  script_fn script_;
  int fd_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> accepted_{0};
  std::mutex mutex_;
  std::vector<int> open_;
  std::vector<std::thread> handlers_;
  std::thread thread_;
};

/// A short whole answer, for scripts.
inline constexpr std::string_view ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

std::unique_ptr<http_server> serve(reactor& io, http_server::handler_fn handler,
                                   http_server::options opts = {});

/// A handler that sends the body back, and what it saw as x-method, x-target and x-got-<header>.
void echo(server_request request, const http_server::respond_fn& respond);

/// The first header of that name, or "(none)".
std::string header(const http_response& r, std::string_view name);

/// The failure, or the response, that `a` must be.
http_failure failed(const answer& a);
http_response good(const answer& a);

/// Lets calls run into their deadline, a longer one each time, until one came as far as `phase`: a
/// loaded machine may be slower than any short deadline. Returns the last failure.
http_failure time_out(http_client& client, const url& to, std::string_view phase);

/// A directory that goes with its owner.
class temp_dir {
public:
  temp_dir();
  ~temp_dir();
  temp_dir(const temp_dir&) = delete;
  temp_dir& operator=(const temp_dir&) = delete;

  [[nodiscard]] std::string file(std::string_view name) const;

private:
  std::string path_;
};

}  // namespace troupe::test
