#include "runtime/host/callback_thread.hpp"

#include "runtime/core/log.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace troupe {

struct callback_thread::queue {
  std::mutex mutex;  // guards all but the thread's own id
  std::condition_variable changed;
  std::deque<job> waiting;
  bool closed = false;
  std::thread thread;
};

callback_thread::callback_thread() : jobs_{std::make_shared<queue>()} {
  jobs_->thread = std::thread{[jobs = jobs_] { serve(jobs); }};
}

callback_thread::~callback_thread() {
  finish();
}

bool callback_thread::post(job what) {
  {
    std::lock_guard lock{jobs_->mutex};
    if (jobs_->closed)
      return false;
    jobs_->waiting.push_back(std::move(what));
  }
  jobs_->changed.notify_one();
  return true;
}

void callback_thread::finish() {
  std::thread ours;
  {
    std::lock_guard lock{jobs_->mutex};
    jobs_->closed = true;
    ours.swap(jobs_->thread);
  }
  jobs_->changed.notify_one();
  if (!ours.joinable())
    return;
  if (ours.get_id() == std::this_thread::get_id())
    ours.detach();  // it runs what waits, and ends by itself
  else
    ours.join();
}

void callback_thread::serve(const std::shared_ptr<queue>& jobs) {
  std::unique_lock lock{jobs->mutex};
  for (;;) {
    jobs->changed.wait(lock, [&] { return jobs->closed || !jobs->waiting.empty(); });
    if (jobs->waiting.empty())
      return;
    auto next = std::move(jobs->waiting.front());
    jobs->waiting.pop_front();
    lock.unlock();
    contained("a callback", next);
    next = nullptr;  // what it holds may end here, not under the lock
    lock.lock();
  }
}

void contained(const char* what, const std::function<void()>& code) noexcept {
  try {
    code();
  } catch (const std::exception& e) {
    log::error(std::string{what} + " of the program threw: " + e.what());
  } catch (...) {
    log::error(std::string{what} + " of the program threw what is no std::exception");
  }
}

}  // namespace troupe
