#pragma once
// A runtime over a scripted model, and what its runs say.

#include "runtime/journal/journal.hpp"
#include <troupe/runtime.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <unistd.h>

namespace troupe::test {

/// Ends with the test.
struct temporary_folder {
  std::filesystem::path path;

  temporary_folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "troupe-host-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~temporary_folder() {
    std::error_code ec;
    std::filesystem::remove_all(path, ec);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  std::string write(const std::string& name, std::string_view text) const {
    auto file = path / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream{file} << text;
    return file.string();
  }
};

inline constexpr const char* one_word =
  R"({"default": {"tool_calls": [{"name": "final_answer", "arguments": {"answer": "word"}}]}})";

/// Tasks with "slow" in them take a minute.
inline constexpr const char* slow_or_word = R"({
  "rules": [{"if_task_contains": "slow", "reply": {"latency_ms": 60000,
    "tool_calls": [{"name": "final_answer", "arguments": {"answer": "late"}}]}}],
  "default": {"tool_calls": [{"name": "final_answer", "arguments": {"answer": "word"}}]}})";

/// Adds by the tool `add`, then answers.
inline constexpr const char* adding_script = R"({
  "rules": [{"from_turn": 1, "reply":
    {"tool_calls": [{"name": "final_answer", "arguments": {"answer": "5.0"}}]}}],
  "default": {"tool_calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}]}})";

/// Calls the tool `meet`, then answers.
inline constexpr const char* waiting_script = R"({
  "rules": [{"from_turn": 1, "reply":
    {"tool_calls": [{"name": "final_answer", "arguments": {"answer": 1}}]}}],
  "default": {"tool_calls": [{"name": "meet", "arguments": {}}]}})";

struct test_runtime {
  explicit test_runtime(std::string_view script, runtime_options options = {}) {
    options.model = "mock/" + folder.write("mock.json", script);
    auto started = runtime::start(std::move(options));
    if (!started)
      FAIL(started.error().detail);
    rt = std::make_unique<runtime>(std::move(*started));
  }

  /// A tool-calling agent with no tools of its own.
  agent define() const {
    auto made = rt->define({.kind = "tool"});
    if (!made)
      FAIL(made.error().detail);
    return *made;
  }

  temporary_folder folder;
  std::unique_ptr<runtime> rt;
};

/// What a run has said, for a test that waits for it.
class event_log {
public:
  event_callback sink() {
    return [this](const live_event& e) {
      std::lock_guard lock{mutex_};
      seen_.push_back(e);
      changed_.notify_all();
    };
  }

  /// Until that kind has been seen so often.
  void wait_for(std::string_view kind, std::ptrdiff_t times) {
    std::unique_lock lock{mutex_};
    auto enough = [&] {
      return std::count_if(seen_.begin(), seen_.end(),
                           [&](const live_event& e) { return e.kind == kind; })
             >= times;
    };
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds{10}, enough));
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<live_event> seen_;
};

}  // namespace troupe::test
