#include "executors/session_sandbox.hpp"

#include "executors/spec_check.hpp"

#include <utility>

namespace troupe {

session_sandbox::session_sandbox(reactor& io, std::shared_ptr<worker_session> session,
                                 const session_settings& settings, std::string isolation)
  : io_{io}, session_{std::move(session)}, settings_{settings}, isolation_{std::move(isolation)} {
  session_->on_gone = [phase = phase_] { phase->store(phase::gone); };
}

session_sandbox::~session_sandbox() {
  io_.post([s = session_] { s->close({}); });
}

void session_sandbox::listen(output_fn output, call_fn call) {
  io_.post([s = session_, output = std::move(output), call = std::move(call)]() mutable {
    s->listen(std::move(output), std::move(call));
  });
}

void session_sandbox::hear_connections(const connection_fn& fn) {
  io_.post([s = session_, fn] { s->hear_connections(fn); });
}

/// One request at a time: it leaves in the callback of the one that entered.
result<void> session_sandbox::enter() {
  auto expected = phase::idle;
  if (phase_->compare_exchange_strong(expected, phase::busy))
    return {};
  return expected == phase::gone
           ? fail(errc::unavailable, "the sandbox is gone")
           : fail(errc::invalid_argument, "a snippet is already running in this sandbox");
}

template <class Done>
auto session_sandbox::leaving(Done done) const {
  return [p = phase_, done = std::move(done)](auto outcome) {
    auto busy = phase::busy;
    p->compare_exchange_strong(busy, phase::idle);
    done(std::move(outcome));
  };
}

void session_sandbox::begin(std::unique_ptr<worker_request> request) {
  // The reactor takes only what can be copied.
  auto shared = std::make_shared<std::unique_ptr<worker_request>>(std::move(request));
  io_.post([s = session_, shared] { s->begin(std::move(*shared)); });
}

result<void> session_sandbox::run(snippet code, done_fn done) {
  auto entered = enter();
  if (entered)
    begin(make_snippet_request(std::move(code), settings_.checkpoints, leaving(std::move(done))));
  return entered;
}

result<void> session_sandbox::put(sandbox_file file, put_fn done) {
  if (auto checked = check_file(file, settings_.limits); !checked)
    return checked;
  auto entered = enter();
  if (entered)
    begin(make_put_request(std::move(file), leaving(std::move(done))));
  return entered;
}

result<void> session_sandbox::get(std::string path, std::size_t max_bytes, got_fn done) {
  if (auto checked = check_path(path); !checked)
    return checked;
  auto entered = enter();
  if (entered)
    begin(make_get_request(std::move(path), max_bytes, settings_.limits, leaving(std::move(done))));
  return entered;
}

result<void> session_sandbox::shell(shell_command command, shell_fn done) {
  if (auto checked = check_command(command, settings_.limits); !checked)
    return checked;
  auto entered = enter();
  if (entered)
    begin(make_shell_request(std::move(command), leaving(std::move(done))));
  return entered;
}

result<void> session_sandbox::fork(std::vector<sandbox_limits> branches, forked_fn done) {
  if (!session_->forks())
    return fail(errc::denied, "sandboxes of this executor cannot be branched");
  if (branches.empty() || branches.size() > max_branches)
    return fail(errc::invalid_argument, std::to_string(branches.size()) + " branches: from 1 to "
                                          + std::to_string(max_branches) + " can be made at once");
  auto entered = enter();
  if (entered)
    io_.post([s = session_, branches = std::move(branches), done = leaving(std::move(done))] {
      s->fork(branches, done);
    });
  return entered;
}

void session_sandbox::answer(call_id id, result<json> value) {
  io_.post([s = session_, id, value = std::move(value)] { s->answer(id, value); });
}

void session_sandbox::interrupt() {
  io_.post([s = session_] { s->interrupt("interrupted"); });
}

void session_sandbox::close(closed_fn done) {
  io_.post([s = session_, done = std::move(done)]() mutable { s->close(std::move(done)); });
}

}  // namespace troupe
