#include "executors/jail/jail_executor.hpp"

#include "executors/jail/jail_session.hpp"
#include "executors/spec_check.hpp"
#include "runtime/core/log.hpp"

#include <atomic>
#include <filesystem>
#include <future>
#include <utility>

#include <unistd.h>

namespace troupe {
namespace {

using jail::jail_core;
using jail::jail_session;

constexpr std::chrono::seconds shutdown_limit{10};

enum class phase { idle, running, gone };

/// What the owner of a session holds: thread-safe, and closes it at the end.
class jail_sandbox final : public sandbox {
public:
  jail_sandbox(reactor& io, std::shared_ptr<jail_session> session)
    : io_{io}, session_{std::move(session)}, isolation_{session_->isolation()} {
    session_->on_gone = [phase = phase_] { phase->store(phase::gone); };
  }

  ~jail_sandbox() override {
    io_.post([s = session_] { s->close({}); });
  }

  void listen(output_fn output, call_fn call) override {
    io_.post([s = session_, output = std::move(output), call = std::move(call)]() mutable {
      s->listen(std::move(output), std::move(call));
    });
  }

  result<void> run(snippet code, done_fn done) override {
    auto expected = phase::idle;
    if (!phase_->compare_exchange_strong(expected, phase::running))
      return expected == phase::gone
               ? fail(errc::unavailable, "the sandbox is gone")
               : fail(errc::invalid_argument, "a snippet is already running in this sandbox");
    io_.post([s = session_, p = phase_, code = std::move(code), done = std::move(done)]() mutable {
      s->run(code, [p, done = std::move(done)](snippet_outcome o) {
        auto running = phase::running;
        p->compare_exchange_strong(running, lives_on(o) ? phase::idle : phase::gone);
        done(std::move(o));
      });
    });
    return {};
  }

  void answer(call_id id, result<json> value) override {
    io_.post([s = session_, id, value = std::move(value)] { s->answer(id, value); });
  }

  void interrupt() override {
    io_.post([s = session_] { s->interrupt("interrupted"); });
  }

  void close(closed_fn done) override {
    io_.post([s = session_, done = std::move(done)]() mutable { s->close(std::move(done)); });
  }

  std::string_view isolation() const noexcept override { return isolation_; }

private:
  reactor& io_;
  std::shared_ptr<jail_session> session_;
  std::shared_ptr<std::atomic<phase>> phase_ = std::make_shared<std::atomic<phase>>(phase::idle);
  std::string isolation_;
};

std::string find_zygote(const std::string& given) {
  if (!given.empty())
    return given;
  std::error_code ec;
  auto dir = std::filesystem::read_symlink("/proc/self/exe", ec).parent_path();
  auto beside = dir / "troupe-zygote";
  if (std::filesystem::exists(beside, ec))
    return beside;
  return dir.parent_path() / "libexec" / "troupe" / "troupe-zygote";
}

/// One made ahead may have died unseen: then a new one takes its place.
void open_session(const std::shared_ptr<jail_core>& core, const std::shared_ptr<jail_session>& s,
                  const sandbox_spec& spec, executor::opened_fn done) {
  auto ahead = s->prepared();
  auto again = ahead ? std::make_shared<sandbox_spec>(spec) : nullptr;
  s->open(spec,
          [core, again, weak = std::weak_ptr{s}, done = std::move(done)](result<void> opened) {
            if (opened)
              done(std::make_shared<jail_sandbox>(core->io, weak.lock()));
            else if (again && opened.error().code == errc::unavailable && !core->closing())
              open_session(core, std::make_shared<jail_session>(core, *again), *again, done);
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
  if (auto checked = check_spec(spec); !checked) {
    core->open_failed();
    done(fail(checked.error()));
    return;
  }
  open_session(core, core->take(spec), spec, std::move(done));
}

}  // namespace

struct jail_executor::impl {
  std::shared_ptr<jail_core> core;
};

std::vector<std::string> jail_options::default_preload() {
  return {"ast",         "base64",     "bisect",  "collections", "copy",      "csv",
          "dataclasses", "datetime",   "decimal", "enum",        "fractions", "functools",
          "hashlib",     "heapq",      "io",      "itertools",   "json",      "math",
          "operator",    "os",         "pathlib", "queue",       "random",    "re",
          "stat",        "statistics", "string",  "struct",      "textwrap",  "threading",
          "time",        "traceback",  "typing",  "unicodedata"};
}

jail_executor::jail_executor(reactor& io, jail_options options) : impl_{std::make_unique<impl>()} {
  impl_->core = std::make_shared<jail_core>(io, find_zygote(options.zygote_path),
                                            std::move(options.preload), options.ready);
  impl_->core->start();
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
