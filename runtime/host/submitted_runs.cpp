#include "runtime/host/submitted_runs.hpp"

namespace troupe {
namespace {

// Of one run, for a callback thread that is behind: a few turns of a streamed reply.
constexpr std::uint32_t most_waiting_events = 4'096;

}  // namespace

void run::state::see(const run_event& what) {
  auto number = ++seen;
  if (waiting.fetch_add(1) >= most_waiting_events) {
    --waiting;
    return;
  }
  live_event shown{id, number, what.kind, what.payload, what.agent, what.depth};
  home->callbacks().post([self = shared_from_this(), shown = std::move(shown)] {
    --self->waiting;
    self->on_event(shown);
  });
}

bool run::state::complete(run_outcome how) {
  std::vector<std::promise<run_outcome>> told;
  std::vector<end_callback> called;
  {
    std::lock_guard lock{mutex};
    if (outcome)
      return false;
    outcome = std::move(how);
    told.swap(promises);
    called.swap(callbacks);
  }
  ended.notify_all();
  for (auto& p : told)
    p.set_value(*outcome);
  for (auto& c : called)
    call_back(std::move(c));
  home->remove(id);
  return true;
}

/// `outcome` is there, and does not change any more.
void run::state::call_back(end_callback callback) {
  auto self = shared_from_this();
  auto job = [self, callback = std::move(callback)] { callback(*self->outcome); };
  if (!home->callbacks().post(job))
    contained("a callback", job);
}

void submitted_runs::open(engine& host) {
  std::lock_guard lock{mutex_};
  host_ = &host;
}

bool submitted_runs::add(const std::shared_ptr<run::state>& r) {
  std::lock_guard lock{mutex_};
  if (closed_.empty())
    open_.emplace(r->id, r);
  return closed_.empty();
}

void submitted_runs::remove(std::uint64_t id) {
  std::shared_ptr<run::state> last;  // not destroyed under the lock
  std::lock_guard lock{mutex_};
  if (auto it = open_.find(id); it != open_.end()) {
    last = std::move(it->second);
    open_.erase(it);
  }
}

void submitted_runs::close(const std::string& why) {
  std::lock_guard lock{mutex_};
  if (closed_.empty())
    closed_ = why;
}

std::string submitted_runs::closed_because() const {
  std::lock_guard lock{mutex_};
  return closed_;
}

void submitted_runs::end_all(const std::string& end, const std::string& why) {
  std::unordered_map<std::uint64_t, std::shared_ptr<run::state>> left;
  {
    std::lock_guard lock{mutex_};
    host_ = nullptr;
    left.swap(open_);
  }
  for (auto& [_, r] : left) {
    run_outcome how;
    how.end = end;
    how.error = why;
    r->complete(std::move(how));
  }
}

}  // namespace troupe
