#pragma once
// One connection of the egress proxy: reads a request, decides, dials, relays. Used on the
// reactor's thread only.

#include "runtime/net/egress_dialer.hpp"
#include "runtime/net/egress_proxy.hpp"
#include "runtime/net/proxy_request.hpp"
#include "runtime/net/relay.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace troupe {

/// What all connections of one proxy share.
struct egress_shared {
  reactor& io;
  egress_policy policy;
  egress_limits limits;
  egress_dialer dialer;
  std::uint64_t bytes_moved = 0;  ///< by all connections, both ways

  /// False when so many bytes more would pass the policy's bound; then nothing more may move.
  [[nodiscard]] bool spend(std::size_t bytes) noexcept;
  [[nodiscard]] bool is_spent() const noexcept;
};

class egress_session : public std::enable_shared_from_this<egress_session> {
public:
  using socket = boost::asio::ip::tcp::socket;
  using error_code = boost::system::error_code;

  struct events {
    egress_proxy::record_fn recorded;                                    ///< once
    std::function<void(const std::shared_ptr<egress_session>&)> closed;  ///< once; the last call
  };

  egress_session(std::shared_ptr<egress_shared> shared, socket client, events on);
  egress_session(const egress_session&) = delete;
  egress_session& operator=(const egress_session&) = delete;

  void start();

  /// Ends it wherever it is. Idempotent.
  void close(std::string_view why);

private:
  enum class phase { reading, dialing, relaying, refusing, closed };

  void read_head();
  void on_head(const error_code& ec, std::size_t bytes);
  void take_request(std::size_t head_end);
  void dial();
  void on_resolved(const result<egress_dialer::addresses>& found);
  void check(const egress_dialer::addresses& found);
  void connect_next(const error_code& last);
  void begin_relay();
  bool on_moving(bool up, std::size_t bytes);

  void refuse(unsigned status, const std::string& why, egress_verdict verdict);
  void drain();
  void record(std::string_view reason);

  void enter(phase next, steady_clock::duration time);
  void watch(time_point until);
  void on_time();

  std::shared_ptr<egress_shared> shared_;
  socket client_;
  socket server_;
  events on_;
  phase phase_ = phase::reading;
  time_point started_;
  time_point moved_;  ///< when a byte last moved
  time_point due_;
  timer_id alarm_ = 0;
  std::string head_;      ///< as large as a head may be
  std::size_t got_ = 0;   ///< bytes of it that came
  std::string leftover_;  ///< that came after the head
  proxy_request request_;
  std::shared_ptr<void> lookup_;
  egress_dialer::addresses addresses_;
  std::size_t next_address_ = 0;
  std::shared_ptr<relay> relay_;
  std::string reply_;
  egress_record record_;
  bool recorded_ = false;
};

}  // namespace troupe
