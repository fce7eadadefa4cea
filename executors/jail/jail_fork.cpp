#include "executors/jail/jail_fork.hpp"

#include "executors/branch_request.hpp"
#include "executors/session_sandbox.hpp"
#include "executors/spec_check.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

/// How much longer than its branches a source may take to answer: it ends when they have ended.
constexpr millis source_grace{2'000};

constexpr int pipe_bytes = 1 << 20;

struct branch {
  sandbox_limits limits;
  time_point until;
  std::shared_ptr<jail_session> session;
  std::optional<error> failure;
  bool moved = false;
};

/// One fork(), from the request to the answer. Kept alive by what it waits for.
class forking : public std::enable_shared_from_this<forking> {
public:
  forking(std::shared_ptr<zygote_pool> pool, std::shared_ptr<jail_session> source,
          sandbox::forked_fn done)
    : pool_{std::move(pool)}, source_{std::move(source)}, spec_{source_->spec()},
      done_{std::move(done)} {}

  void start(const std::vector<sandbox_limits>& all) {
    for (const auto& limits : all)
      branches_.push_back({limits, after(steady_clock::now(), limits.open_timeout), {}, {}, false});
    waiting_ = branches_.size();
    for (auto& b : branches_)
      open(b);
  }

private:
  // --- the sandboxes ---------------------------------------------------------------------------

  void open(branch& b) {
    if (source_->gone()) {
      opened(b, fail(errc::unavailable, "the sandbox is gone"));
      return;
    }
    auto spec = spec_;
    spec.limits = b.limits;
    if (auto checked = check_spec(spec, pool_->core()->profile_names()); !checked) {
      pool_->core()->open_failed();
      opened(b, fail(checked.error()));
      return;
    }
    b.session = pool_->take(spec);
    if (b.session->prepared() && b.session->zygote() != source_->zygote()) {
      b.session->close({});
      b.session = std::make_shared<jail_session>(pool_, spec);
    }
    b.session->open(spec, [self = shared_from_this(), &b](result<void> outcome) {
      self->opened(b, std::move(outcome));
    });
  }

  void opened(branch& b, result<void> outcome) {
    if (!outcome)
      b.failure = outcome.error();
    else if (b.session->zygote() != source_->zygote())
      b.failure = {errc::unavailable,
                   "the jail's zygote has been restarted since the session began, "
                   "and only its own sandboxes can go on with it"};
    if (--waiting_ == 0)
      move_all();
  }

  // --- the move --------------------------------------------------------------------------------

  void move_all() {
    waiting_ = 1;  // the source
    for (auto& b : branches_)
      if (!b.failure && connect(b))
        ++waiting_;
    auto count = waiting_ - 1;
    if (count == 0) {
      finish();
      return;
    }
    for (auto& b : branches_)
      if (!b.failure)
        take(b);
    source_->begin(make_branch_request(count, last_deadline(),
                                       [self = shared_from_this()](result<void> outcome) {
                                         if (!outcome)
                                           self->source_failure_ = outcome.error();
                                         self->one_ended();
                                       }));
  }

  /// Gives both workers their ends of a pipe.
  bool connect(branch& b) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      b.failure = {errc::unavailable, "a pipe for a branch: " + errno_text(errno)};
      return false;
    }
    unique_fd read_end{ends[0]}, write_end{ends[1]};
    ::fcntl(write_end.get(), F_SETPIPE_SZ, pipe_bytes);  // as large as the machine allows
    if (b.session->send_pipe(read_end) && source_->send_pipe(write_end))
      return true;
    b.failure = {errc::unavailable, "a sandbox takes no pipe"};
    return false;
  }

  void take(branch& b) {
    b.session->begin(
      make_take_request(b.until, [self = shared_from_this(), &b](result<void> outcome) {
        b.moved = outcome.has_value();
        if (!outcome) {
          b.failure = outcome.error();
          b.session->close({});  // so that the helper at the other end of its pipe ends too
        }
        self->one_ended();
      }));
  }

  [[nodiscard]] time_point last_deadline() const {
    auto latest = std::ranges::max(branches_, {}, &branch::until).until;
    return after(latest, source_grace);
  }

  void one_ended() {
    if (--waiting_ == 0)
      finish();
  }

  // --- the answer ------------------------------------------------------------------------------

  void finish() {
    std::vector<result<std::shared_ptr<sandbox>>> results;
    for (auto& b : branches_)
      results.push_back(result_of(b));
    done_(std::move(results));
  }

  result<std::shared_ptr<sandbox>> result_of(branch& b) {
    if (b.moved)
      return std::make_shared<session_sandbox>(pool_->core()->io, b.session,
                                               session_settings{b.limits, spec_.checkpoints},
                                               pool_->info().isolation);
    if (b.session)
      b.session->close({});
    // Why the source gave none says more than that none came.
    return fail(source_failure_ ? *source_failure_ : *b.failure);
  }

  std::shared_ptr<zygote_pool> pool_;
  std::shared_ptr<jail_session> source_;
  sandbox_spec spec_;
  sandbox::forked_fn done_;
  std::vector<branch> branches_;
  std::size_t waiting_ = 0;
  std::optional<error> source_failure_;
};

}  // namespace

void fork_session(std::shared_ptr<zygote_pool> pool, std::shared_ptr<jail_session> source,
                  const std::vector<sandbox_limits>& branches, sandbox::forked_fn done) {
  std::make_shared<forking>(std::move(pool), std::move(source), std::move(done))->start(branches);
}

}  // namespace troupe::jail
