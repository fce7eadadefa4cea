#pragma once
// Moves bytes between two connected sockets, both ways, until both are through. Asio's own types:
// include this from .cpp files of runtime/net only.

#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

namespace troupe {

/// Each way has one fixed buffer, and reads again only when all of it was written: so a slow reader
/// slows its writer, and nothing queues up. The end of one way is passed on as such, and the other
/// goes on. Used on the reactor's thread only.
class relay : public std::enable_shared_from_this<relay> {
public:
  using socket = boost::asio::ip::tcp::socket;

  struct events {
    /// So many bytes are about to be passed on; false: they may not, and the relay was closed.
    std::function<bool(bool up, std::size_t bytes)> moving;
    std::function<void(std::string_view how)> ended;  ///< once, later, unless closed before
  };

  /// What goes ahead of a way's own bytes, and how many of those are passed on; more are read and
  /// thrown away.
  struct lead {
    std::string first{};
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  };

  relay(socket client, socket server, events on);
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;

  void start(lead up, lead down);

  /// Ends both ways at once; nothing is called any more. Idempotent.
  void close() noexcept;

private:
  struct way {
    socket& from;
    socket& to;
    std::string_view broken;  ///< how to say that `from` broke
    std::string first{};
    std::uint64_t left = 0;
    bool over = false;
    std::array<char, 16u << 10> buffer{};
  };

  void begin(way& w, lead with);
  void read(way& w);
  void on_read(way& w, const boost::system::error_code& ec, std::size_t bytes);
  void written(way& w, const boost::system::error_code& ec);
  void finish(way& w);
  void end(std::string_view how);

  socket client_;
  socket server_;
  way up_;
  way down_;
  events on_;
  bool closed_ = false;
};

}  // namespace troupe
