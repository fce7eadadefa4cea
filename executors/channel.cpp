#include "executors/channel.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

namespace troupe {

using boost::asio::posix::stream_descriptor;

struct channel::impl {
  explicit impl(boost::asio::io_context& context) : descriptor{context} {}

  stream_descriptor descriptor;

  void wait(stream_descriptor::wait_type what, std::function<void()> fn) {
    descriptor.async_wait(what, [fn = std::move(fn)](boost::system::error_code ec) {
      if (!ec)
        fn();
    });
  }
};

channel::channel(reactor& io) : impl_{std::make_unique<impl>(io.context())} {}

channel::~channel() = default;

void channel::assign(unique_fd fd) {
  boost::system::error_code ec;
  auto raw = fd.get();
  if (raw < 0)
    return;
  impl_->descriptor.assign(raw, ec);
  if (!ec)
    static_cast<void>(fd.release());
}

void channel::close() noexcept {
  boost::system::error_code ec;
  impl_->descriptor.close(ec);
}

int channel::fd() const noexcept {
  return impl_->descriptor.is_open() ? impl_->descriptor.native_handle() : -1;
}

void channel::when_readable(std::function<void()> fn) {
  if (open())
    impl_->wait(stream_descriptor::wait_read, std::move(fn));
}

void channel::when_writable(std::function<void()> fn) {
  if (open())
    impl_->wait(stream_descriptor::wait_write, std::move(fn));
}

}  // namespace troupe
