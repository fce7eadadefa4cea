#include "executors/jail/jail_executor.hpp"

#include "executors/helper_program.hpp"
#include "executors/jail/jail_session.hpp"
#include "executors/session_sandbox.hpp"
#include "executors/spec_check.hpp"
#include "runtime/core/log.hpp"

#include <future>
#include <utility>

#include <unistd.h>

namespace troupe {
namespace {

using jail::jail_core;
using jail::jail_session;
using jail::zygote_pool;

constexpr std::chrono::seconds shutdown_limit{10};

/// One made ahead may have died unseen: then a new one takes its place.
void open_session(const std::shared_ptr<zygote_pool>& pool, const std::shared_ptr<jail_session>& s,
                  const sandbox_spec& spec, executor::opened_fn done) {
  auto ahead = s->prepared();
  auto again = ahead ? std::make_shared<sandbox_spec>(spec) : nullptr;
  s->open(spec, [pool, again, weak = std::weak_ptr{s},
                 settings = session_settings{spec.limits, spec.checkpoints},
                 done = std::move(done)](result<void> opened) {
    if (opened)
      done(std::make_shared<session_sandbox>(pool->core()->io, weak.lock(), settings,
                                             pool->info().isolation));
    else if (again && opened.error().code == errc::unavailable && !pool->core()->closing())
      open_session(pool, std::make_shared<jail_session>(pool, *again), *again, done);
    else
      done(fail(opened.error()));
  });
}

void open_on_reactor(const std::shared_ptr<jail_core>& core, const sandbox_spec& spec,
                     executor::opened_fn done) {
  if (core->closing()) {
    done(fail(errc::unavailable, "the jail is closing"));
    return;
  }
  auto checked = check_spec(spec, core->profile_names());
  auto pool = core->pool(spec.profile);
  if (checked)
    checked = pool->check_layers();
  if (!checked) {
    core->open_failed();
    done(fail(checked.error()));
    return;
  }
  open_session(pool, pool->take(spec), spec, std::move(done));
}

}  // namespace

struct jail_executor::impl {
  std::shared_ptr<jail_core> core;
};

jail_executor::jail_executor(reactor& io, const jail_options& options)
  : impl_{std::make_unique<impl>()} {
  impl_->core = std::make_shared<jail_core>(io, options.memory);
  impl_->core->start(find_helper(options.zygote_path, "troupe-zygote"), options.profiles);
}

jail_executor::~jail_executor() {
  auto closed = std::make_shared<std::promise<void>>();
  auto waiting = closed->get_future();
  impl_->core->io.post(
    [core = impl_->core, closed] { core->close([closed] { closed->set_value(); }); });
  if (waiting.wait_for(shutdown_limit) != std::future_status::ready)
    log::error("jail: sandboxes were still ending when the executor was destroyed");
}

void jail_executor::open(sandbox_spec spec, opened_fn done) {
  impl_->core->io.post(
    [core = impl_->core, spec = std::move(spec), done = std::move(done)]() mutable {
      open_on_reactor(core, spec, std::move(done));
    });
}

executor_info jail_executor::info() const {
  return impl_->core->info();
}

executor_stats jail_executor::stats() const {
  return impl_->core->stats();
}

}  // namespace troupe
