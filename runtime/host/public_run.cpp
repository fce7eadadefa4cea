#include "runtime/host/submitted_runs.hpp"

namespace troupe {

std::uint64_t run::id() const noexcept {
  return state_->id;
}

bool run::done() const {
  std::lock_guard lock{state_->mutex};
  return state_->outcome.has_value();
}

run_outcome run::wait() const {
  std::unique_lock lock{state_->mutex};
  state_->ended.wait(lock, [&] { return state_->outcome.has_value(); });
  return *state_->outcome;
}

std::optional<run_outcome> run::wait_for(std::chrono::milliseconds time) const {
  std::unique_lock lock{state_->mutex};
  state_->ended.wait_for(lock, time, [&] { return state_->outcome.has_value(); });
  return state_->outcome;
}

std::future<run_outcome> run::future() const {
  std::promise<run_outcome> promise;
  auto out = promise.get_future();
  std::lock_guard lock{state_->mutex};
  if (state_->outcome)
    promise.set_value(*state_->outcome);
  else
    state_->promises.push_back(std::move(promise));
  return out;
}

void run::on_end(end_callback callback) const {
  if (!callback)
    return;
  {
    std::lock_guard lock{state_->mutex};
    if (!state_->outcome) {
      state_->callbacks.push_back(std::move(callback));
      return;
    }
  }
  state_->call_back(std::move(callback));
}

void run::cancel(std::string reason) const {
  state_->home->post(run_call_off{run_id{state_->id}, std::move(reason)});
}

void run::pause() const {
  state_->home->post(run_gate{run_id{state_->id}, run_pace::pause});
}

void run::step() const {
  state_->home->post(run_gate{run_id{state_->id}, run_pace::step});
}

void run::resume() const {
  state_->home->post(run_gate{run_id{state_->id}, run_pace::resume});
}

}  // namespace troupe
