#pragma once
// Model servers for benches, in a process of their own: what they cost is not the client's, and
// neither are their descriptors.

#include "runtime/core/error.hpp"
#include "runtime/core/time.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include <sys/types.h>

namespace troupe::measure {

/// One mock server, and four that answer only what contains "asked:<nanoseconds of steady time>",
/// with the nanoseconds since then as the reply's text; all else is held until the process ends.
/// Resource.
class bench_servers {
public:
  static constexpr std::size_t holders = 4;

  /// Forks: no other thread may be running.
  /// Errors  unavailable: the process, or its sockets, cannot be made.
  static result<std::unique_ptr<bench_servers>> start();
  ~bench_servers();
  bench_servers(const bench_servers&) = delete;
  bench_servers& operator=(const bench_servers&) = delete;

  [[nodiscard]] std::string mock_url() const { return url_of(ports_[0]); }
  [[nodiscard]] std::string holder_url(std::size_t i) const { return url_of(ports_.at(1 + i)); }

  /// User and system CPU of the process so far.
  [[nodiscard]] micros cpu() const;

  /// Requests that are held, of all that came.
  [[nodiscard]] std::uint64_t held() const { return *held_; }

private:
  using port_list = std::array<std::uint16_t, 1 + holders>;
  using shared_count = std::atomic<std::uint64_t>;

  bench_servers() = default;

  [[nodiscard]] static std::string url_of(std::uint16_t port);
  [[noreturn]] static void serve(int ports_out, int lifeline, shared_count& held);

  pid_t child_ = -1;
  int lifeline_ = -1;
  port_list ports_{};
  shared_count* held_ = nullptr;  ///< in memory of both processes
};

}  // namespace troupe::measure
