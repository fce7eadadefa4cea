#include "runtime/net/reactor.hpp"

#include "runtime/core/timer_queue.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <pthread.h>
#include <signal.h>

namespace troupe {
namespace {

/// Keeps the process's signals away from threads started while it lives.
class signals_blocked {
public:
  signals_blocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

private:
  sigset_t before_;
};

}  // namespace

struct reactor::impl {
  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
    context.get_executor()};
  boost::asio::steady_timer alarm{context};
  std::mutex mutex;
  timer_queue queue;             ///< guarded by mutex
  time_point armed_for = never;  ///< guarded by mutex; what the alarm waits for
  std::atomic<bool> stopped{false};
  std::thread thread;

  /// Points the alarm at the first timer. On the thread.
  void arm() {
    time_point when;
    {
      std::lock_guard lock{mutex};
      when = queue.next().value_or(never);
      armed_for = when;
    }
    if (when == never) {
      alarm.cancel();
      return;
    }
    alarm.expires_at(when);
    alarm.async_wait([this](boost::system::error_code ec) {
      if (!ec)
        fire();
    });
  }

  void fire() {
    while (auto due = pop_due())
      (*due)();
    arm();
  }

  std::optional<timers::callback> pop_due() {
    std::lock_guard lock{mutex};
    return queue.pop_due(steady_clock::now());
  }

  /// Every timer set by a callback would wake the thread once more if it armed at once; a timer
  /// that is not the first needs no wake-up at all.
  void added(time_point when) {
    {
      std::lock_guard lock{mutex};
      if (when >= armed_for)
        return;
      armed_for = when;
    }
    boost::asio::post(context, [this] { arm(); });
  }
};

reactor::reactor() : impl_{std::make_unique<impl>()} {
  signals_blocked guard;
  impl_->thread = std::thread{[state = impl_.get()] { state->context.run(); }};
}

reactor::~reactor() {
  stop();
}

boost::asio::io_context& reactor::context() noexcept {
  return impl_->context;
}

void reactor::post(std::function<void()> fn) {
  if (!impl_->stopped)
    boost::asio::post(impl_->context, std::move(fn));
}

bool reactor::on_thread() const noexcept {
  return std::this_thread::get_id() == impl_->thread.get_id();
}

time_point reactor::now() const {
  return steady_clock::now();
}

timer_id reactor::at(time_point when, callback fn) {
  timer_id id;
  {
    std::lock_guard lock{impl_->mutex};
    id = impl_->queue.add(when, std::move(fn));
  }
  if (!impl_->stopped)
    impl_->added(when);
  return id;
}

bool reactor::cancel(timer_id id) {
  std::lock_guard lock{impl_->mutex};
  return impl_->queue.cancel(id);
}

void reactor::stop() {
  if (impl_->stopped.exchange(true))
    return;
  impl_->work.reset();
  impl_->context.stop();
  impl_->thread.join();
  std::lock_guard lock{impl_->mutex};
  impl_->queue = {};
}

}  // namespace troupe
