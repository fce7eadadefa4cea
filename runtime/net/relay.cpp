#include "runtime/net/relay.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <utility>

namespace troupe {

namespace asio = boost::asio;
using boost::system::error_code;

relay::relay(socket client, socket server, events on)
  : client_{std::move(client)}, server_{std::move(server)},
    up_{client_, server_, "the client broke the connection"},
    down_{server_, client_, "the server broke the connection"}, on_{std::move(on)} {}

void relay::start(lead up, lead down) {
  begin(up_, std::move(up));
  begin(down_, std::move(down));
}

void relay::begin(way& w, lead with) {
  w.left = with.most;
  w.first = std::move(with.first);
  if (w.first.empty()) {
    read(w);
    return;
  }
  asio::async_write(
    w.to, asio::buffer(w.first),
    [self = shared_from_this(), &w](const error_code& ec, std::size_t) { self->written(w, ec); });
}

void relay::read(way& w) {
  w.from.async_read_some(asio::buffer(w.buffer),
                         [self = shared_from_this(), &w](const error_code& ec, std::size_t bytes) {
                           self->on_read(w, ec, bytes);
                         });
}

void relay::on_read(way& w, const error_code& ec, std::size_t bytes) {
  if (closed_)
    return;
  if (ec) {
    if (ec == asio::error::eof)
      finish(w);
    else
      end(w.broken);
    return;
  }
  auto pass = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, w.left));
  if (pass == 0) {
    read(w);
    return;
  }
  if (!on_.moving(&w == &up_, pass))
    return;
  w.left -= pass;
  asio::async_write(w.to, asio::buffer(w.buffer, pass),
                    [self = shared_from_this(), &w](const error_code& failed, std::size_t) {
                      self->written(w, failed);
                    });
}

void relay::written(way& w, const error_code& ec) {
  if (closed_)
    return;
  if (!ec) {
    read(w);
    return;
  }
  // The peer takes no more, yet what it said before may still be on its way: a server that refuses
  // an upload answers first. So only this way is over.
  w.over = true;
  if (up_.over && down_.over)
    end("closed");
}

void relay::finish(way& w) {
  error_code gone;
  w.to.shutdown(socket::shutdown_send, gone);
  w.over = true;
  if (up_.over && down_.over)
    end("closed");
}

void relay::end(std::string_view how) {
  auto ended = std::move(on_.ended);
  close();
  ended(how);
}

void relay::close() noexcept {
  if (std::exchange(closed_, true))
    return;
  error_code ignored;
  client_.close(ignored);
  server_.close(ignored);
}

}  // namespace troupe
