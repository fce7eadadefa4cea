#pragma once
// The mock server without its sockets: a request and the time in, what is answered and when out.

#include "runtime/core/random.hpp"
#include "runtime/model/mock_answer.hpp"
#include "runtime/model/mock_faults.hpp"
#include "runtime/model/mock_limits.hpp"
#include "runtime/model/mock_model.hpp"
#include "runtime/model/mock_past.hpp"
#include "runtime/model/mock_wire.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

struct mock_service_settings {
  std::uint64_t seed = 1;
  bool require_key = false;  ///< a request without any key is a 401
};

/// An HTTP request as the mock sees it; views into what the server holds.
struct mock_http_request {
  std::string_view method;
  std::string_view target;
  const header_list& headers;  ///< names in lower case
  std::string_view body;
};

/// When it is.
struct mock_time {
  time_point now;
  std::int64_t wall = 0;  ///< microseconds since the Unix epoch
};

/// All that was decided about one request. Its bytes are made when they are due: a reply that waits
/// costs only itself.
struct mock_turn {
  micros latency{0};
  unsigned status = 200;
  header_list headers{};
  std::string ready{};  ///< the whole body, when there is no `message`
  std::optional<mock_message> message{};
  const mock_wire* wire = nullptr;
  bool stream = false;
  bool limited = false;  ///< turned away by a limit
  std::optional<mock_fault> fault{};
  rng random{0};  ///< for what is drawn when the bytes are made
};

/// Answers requests in the order in which they come. Request n (from 1) draws from a stream of its
/// own, given by the seed and n: the same requests in the same order meet the same latencies,
/// failures and faults, whatever the timing. Not thread-safe.
class mock_service {
public:
  mock_service(mock_script script, const mock_service_settings& settings, mock_time start);

  [[nodiscard]] mock_turn take(const mock_http_request& request, mock_time time,
                               std::uint64_t in_flight);

  /// The answer's bytes; once for each turn.
  [[nodiscard]] mock_answer bytes_of(mock_turn turn) const;

private:
  struct call;

  void answer(call& c);
  void list_models(call& c) const;
  [[nodiscard]] tl::expected<mock_ask, mock_error> read_ask(const call& c) const;
  [[nodiscard]] std::optional<mock_error> refusal(const call& c) const;
  [[nodiscard]] bool knows(std::string_view model) const;
  [[nodiscard]] bool go_on(call& c, mock_ask& ask) const;
  void reply_to(call& c, mock_ask ask);
  void say(call& c, mock_ask ask, model_reply reply);
  void limit_or_strike(call& c);
  void write_events(mock_turn& turn, mock_answer& out) const;
  static void deny(call& c, const mock_denial& denied);
  static void strike(call& c, const mock_fault& fault);
  static void fail_with(call& c, const mock_error& e);

  mock_script script_;
  mock_service_settings settings_;
  time_point start_;
  bool looks_at_last_;  ///< some rule of the script does: the text is long, and costs
  mock_limits limits_;
  mock_past past_;
  std::uint64_t number_ = 0;
};

}  // namespace troupe
