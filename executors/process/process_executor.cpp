#include "executors/process/process_executor.hpp"

#include "executors/helper_program.hpp"
#include "executors/process/process_session.hpp"
#include "executors/session_sandbox.hpp"
#include "executors/spec_check.hpp"
#include "runtime/core/log.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string_view>

#include <unistd.h>

namespace troupe {
namespace {

using process::process_core;
using process::process_session;

constexpr std::chrono::seconds shutdown_limit{30};

/// As execvp does, but now: a link is kept, since it may be how a virtual environment is told.
result<std::string> find_python(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return name;
  const auto* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    auto dir = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), dir.size() + 1));
    auto candidate = std::string{dir} + "/" + name;
    std::error_code ec;
    if (dir.starts_with('/') && std::filesystem::is_regular_file(candidate, ec)
        && ::access(candidate.c_str(), X_OK) == 0)
      return candidate;
  }
  return fail(errc::unavailable,
              "there is no '" + name + "' on PATH: install Python 3.10 or newer");
}

std::filesystem::path directory_of(const process_options& options) {
  if (!options.directory.empty())
    return options.directory;
  std::error_code ec;
  auto path = std::filesystem::temp_directory_path(ec);
  return ec ? std::filesystem::path{"/tmp"} : path;
}

void open_on_reactor(const std::shared_ptr<process_core>& core, const sandbox_spec& spec,
                     executor::opened_fn done) {
  if (core->closing()) {
    done(fail(errc::unavailable, "the executor is closing"));
    return;
  }
  if (auto checked = check_spec(spec, {core->profile}); !checked) {
    core->open_failed();
    done(fail(checked.error()));
    return;
  }
  auto session = std::make_shared<process_session>(core, spec.limits);
  session->open(spec, [weak = std::weak_ptr{session}, core,
                       settings = session_settings{spec.limits, false},
                       done = std::move(done)](result<void> opened) {
    if (!opened)
      done(fail(opened.error()));
    else
      done(
        std::make_shared<session_sandbox>(core->io, weak.lock(), settings, core->info().isolation));
  });
}

}  // namespace

struct process_executor::impl {
  std::shared_ptr<process_core> core;
};

process_executor::process_executor(reactor& io, const process_options& options)
  : impl_{std::make_unique<impl>()} {
  impl_->core = std::make_shared<process_core>(
    io, find_helper(options.keeper_path, "troupe-keeper"), find_python(options.python),
    directory_of(options), options.profile);
}

process_executor::~process_executor() {
  auto closed = std::make_shared<std::promise<void>>();
  auto waiting = closed->get_future();
  impl_->core->io.post(
    [core = impl_->core, closed] { core->close([closed] { closed->set_value(); }); });
  if (waiting.wait_for(shutdown_limit) != std::future_status::ready)
    log::error("process: sandboxes were still ending when the executor was destroyed");
}

void process_executor::open(sandbox_spec spec, opened_fn done) {
  impl_->core->io.post(
    [core = impl_->core, spec = std::move(spec), done = std::move(done)]() mutable {
      open_on_reactor(core, spec, std::move(done));
    });
}

executor_info process_executor::info() const {
  return impl_->core->info();
}

executor_stats process_executor::stats() const {
  return impl_->core->stats();
}

}  // namespace troupe
