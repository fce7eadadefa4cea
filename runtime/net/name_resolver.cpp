#include "runtime/net/name_resolver.hpp"

#include "runtime/net/host_port.hpp"

#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/address_v6.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace troupe {
namespace {

namespace ip = boost::asio::ip;
using addresses = name_resolver::addresses;

constexpr std::size_t most_threads = 4;
constexpr std::size_t most_waiting = 256;
constexpr std::chrono::seconds idle_time{10};

ip::address address_of(const sockaddr& a) {
  if (a.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &a, sizeof v4);
    return ip::address_v4{ntohl(v4.sin_addr.s_addr)};
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &a, sizeof v6);
  ip::address_v6::bytes_type bytes;
  std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
  return ip::address_v6{bytes, v6.sin6_scope_id};
}

error explain(const std::string& name, int code, int number) {
  auto host = "the host name '" + name + "'";
  switch (code) {
  case EAI_NONAME:
    return {errc::not_found, host + " does not exist; check its spelling"};
  case EAI_AGAIN:
    return {errc::unavailable, "no DNS server answered for " + host
                                 + "; check this machine's network and /etc/resolv.conf"};
  case EAI_FAIL:
    return {errc::unavailable, "the DNS server could not look up " + host
                                 + "; check /etc/resolv.conf, or the name's own DNS"};
  default:
    return {errc::unavailable,
            "cannot look up " + host + ": "
              + (code == EAI_SYSTEM ? errno_text(number) : std::string{::gai_strerror(code)})};
  }
}

result<addresses> look_up_now(const std::string& name, address_family family) {
  if (is_localhost(name))  // a container's root may lack /etc/hosts
    return addresses{family == address_family::v6 ? ip::address{ip::address_v6::loopback()}
                                                  : ip::address{ip::address_v4::loopback()}};
  addrinfo hints{};
  hints.ai_family = family == address_family::v6 ? AF_INET6 : AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (auto code = ::getaddrinfo(name.c_str(), nullptr, &hints, &list); code != 0) {
    auto number = errno;
    if (code == EAI_NODATA || code == EAI_ADDRFAMILY)
      return addresses{};
    return fail(explain(name, code, number));
  }
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner{list, &::freeaddrinfo};
  addresses out;
  for (const auto* a = list; a != nullptr; a = a->ai_next)
    if (auto found = address_of(*a->ai_addr); std::ranges::find(out, found) == out.end())
      out.push_back(found);
  return out;
}

struct job {
  std::string name;
  address_family family = address_family::v6;
  name_resolver::answer_fn then;
};

/// What the threads and their owner share: a thread within getaddrinfo may outlive the owner.
struct pool {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<job> jobs;
  std::size_t threads = 0;
  std::size_t idle = 0;
  bool closed = false;

  /// Nothing when the thread shall end.
  std::optional<job> take() {
    std::unique_lock lock{mutex};
    ++idle;
    auto woken = changed.wait_for(lock, idle_time, [&] { return closed || !jobs.empty(); });
    --idle;
    if (!woken || closed) {
      --threads;
      return std::nullopt;
    }
    auto next = std::move(jobs.front());
    jobs.pop_front();
    return next;
  }

  void work() {
    while (auto next = take()) {
      auto answer = look_up_now(next->name, next->family);
      // Within the lock: what `then` refers to lives as long as the owner.
      std::lock_guard lock{mutex};
      if (!closed)
        next->then(std::move(answer));
    }
  }
};

class system_resolver_impl final : public name_resolver {
public:
  ~system_resolver_impl() override {
    std::lock_guard lock{pool_->mutex};
    pool_->closed = true;
    pool_->jobs.clear();
    pool_->changed.notify_all();
  }
  system_resolver_impl() = default;
  system_resolver_impl(const system_resolver_impl&) = delete;
  system_resolver_impl& operator=(const system_resolver_impl&) = delete;

  void look_up(const std::string& name, address_family family, answer_fn then) override {
    std::unique_lock lock{pool_->mutex};
    if (pool_->jobs.size() >= most_waiting || !have_thread()) {
      lock.unlock();
      then(fail(errc::unavailable, "cannot look up the host name '" + name
                                     + "': too many lookups wait, or no thread can be had"));
      return;
    }
    pool_->jobs.push_back({name, family, std::move(then)});
    pool_->changed.notify_one();
  }

private:
  /// Starts one more when those that wait are too few. Within the lock.
  bool have_thread() {
    if (pool_->idle > pool_->jobs.size() || pool_->threads == most_threads)
      return true;
    try {
      std::thread{[p = pool_] { p->work(); }}.detach();
      ++pool_->threads;
    } catch (const std::system_error&) {
    }
    return pool_->threads > 0;
  }

  std::shared_ptr<pool> pool_ = std::make_shared<pool>();
};

}  // namespace

std::shared_ptr<name_resolver> system_resolver() {
  return std::make_shared<system_resolver_impl>();
}

}  // namespace troupe
