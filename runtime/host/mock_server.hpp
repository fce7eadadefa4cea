#pragma once
// `troupe mock` in process: the mock service behind an HTTP server on a thread of its own, and what
// that costs. Benches and tests start as many as they need.

#include "runtime/core/error.hpp"
#include "runtime/core/time.hpp"
#include "runtime/model/mock_service.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace troupe {

struct mock_server_settings {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: the system picks
  mock_service_settings service{};
  /// Requests that wait for their answer, those whose client has gone included; the next get a 503.
  std::size_t max_in_flight = 65'536;
  millis stuck_after{60'000};  ///< as http_server::options has it
};

/// What a mock server has done so far, and what it cost.
struct mock_stats {
  std::uint64_t requests = 0;
  std::map<unsigned, std::uint64_t> by_status{};  ///< as sent; 0: no answer was sent at all
  std::uint64_t streams = 0;
  std::uint64_t limited = 0;               ///< turned away by a limit
  std::array<std::uint64_t, 16> faults{};  ///< by fault_kind
  token_usage tokens{};                    ///< of the replies that were sent
  std::size_t in_flight = 0;
  std::size_t peak_in_flight = 0;
  std::uint64_t connections = 0;  ///< accepted
  std::size_t open = 0;           ///< connections now
  micros wall{0};                 ///< since the start
  micros cpu{0};                  ///< of its one thread: cpu / wall is its saturation
  micros worst_lag{0};            ///< how late its thread came to something, since the stats before
};

/// Listens while it lives. Resource; made and destroyed off its own thread.
class mock_server {
public:
  /// Errors  unavailable: the address cannot be bound.
  static result<std::unique_ptr<mock_server>> start(mock_script script,
                                                    const mock_server_settings& settings);
  ~mock_server();
  mock_server(const mock_server&) = delete;
  mock_server& operator=(const mock_server&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;

  /// "http://127.0.0.1:8400", without a path.
  [[nodiscard]] std::string url() const;

  /// Waits for the server's thread, which is busy when it is saturated.
  [[nodiscard]] mock_stats stats();

private:
  struct impl;
  explicit mock_server(std::unique_ptr<impl> i);
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe
