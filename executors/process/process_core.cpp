#include "executors/process/process_core.hpp"

#include "executors/process/process_session.hpp"
#include "executors/process/worker_image.hpp"

#include <utility>

namespace troupe::process {
namespace {

constexpr const char* isolation =
  "none: a plain child process of this user, with rlimits and an import allow-list; for code you "
  "trust";

std::vector<std::string> missing_layers() {
  return {"files: the code reads and writes what this user may",
          "processes: the code sees, signals and traces the user's others",
          "network: the code reaches what this machine reaches",
          "system calls: none is denied",
          "memory: a limit for each process, none for the sandbox",
          "a limit on the number of processes: the kernel counts the user's others too",
          "disk: a limit on the size of a file, none for the sandbox",
          "the end of all its processes: sure only while the code does not kill its keeper"};
}

constexpr executor_abilities abilities{.memory_limit = true};

}  // namespace

process_core::process_core(reactor& r, std::string keeper, result<std::string> interpreter,
                           std::filesystem::path where, std::string profile_name)
  : io{r}, keeper_path{std::move(keeper)}, directory{std::move(where)},
    profile{std::move(profile_name)}, python_{std::move(interpreter)} {}

result<int> process_core::image() {
  if (!image_) {
    auto made = make_worker_image();
    if (!made)
      return fail(made.error());
    image_ = std::move(*made);
  }
  return image_.get();
}

void process_core::opening(std::shared_ptr<process_session> s) {
  sessions_.insert(std::move(s));
}

void process_core::opened(micros took, const worker::interpreter& python) {
  // What was on PATH may be a script that looks for the right interpreter every time.
  if (python.path.starts_with('/'))
    python_ = python.path;
  std::lock_guard lock{mutex_};
  ++stats_.opened;
  ++stats_.live;
  stats_.open_total += took;
  version_ = python.version;
}

void process_core::open_failed() {
  std::lock_guard lock{mutex_};
  ++stats_.open_failures;
}

void process_core::ended(const std::shared_ptr<process_session>& s, bool was_open,
                         const close_report& report) {
  sessions_.erase(s);
  {
    std::lock_guard lock{mutex_};
    if (was_open) {
      ++stats_.closed;
      --stats_.live;
      stats_.teardown_total += report.teardown;
    }
    if (!report.clean())
      ++stats_.unclean_closes;
  }
  tell_when_empty();
}

void process_core::close(std::function<void()> done) {
  closing_ = true;
  closed_ = std::move(done);
  auto all = sessions_;
  for (const auto& s : all)
    s->close({});
  tell_when_empty();
}

void process_core::tell_when_empty() {
  if (!closing_ || !sessions_.empty() || !closed_)
    return;
  image_.reset();
  std::exchange(closed_, nullptr)();
}

executor_info process_core::info() const {
  std::lock_guard lock{mutex_};
  return {"process", isolation, missing_layers(), version_, abilities};
}

executor_stats process_core::stats() const {
  std::lock_guard lock{mutex_};
  return stats_;
}

}  // namespace troupe::process
