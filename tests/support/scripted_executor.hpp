#pragma once
// An executor for tests of what stands above executors: snippets end as the test says, and every
// open and close is counted. Answers inline or when told to.

#include "executors/executor.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::test {

/// What a snippet does: given the code, its outcome; or nothing, to hang until closed.
using snippet_script = std::function<std::optional<snippet_outcome>(const snippet&)>;

struct script_log {
  std::size_t opened = 0;
  std::size_t closed = 0;
  std::size_t live = 0;
  std::size_t peak = 0;
  std::vector<std::string> ran;
};

class scripted_sandbox final : public sandbox {
public:
  scripted_sandbox(snippet_script script, std::shared_ptr<script_log> log)
    : script_{std::move(script)}, log_{std::move(log)} {}

  void listen(output_fn output, call_fn call) override {
    output_ = std::move(output);
    call_ = std::move(call);
  }

  result<void> run(snippet code, done_fn done) override {
    if (gone)
      return fail(errc::unavailable, "the sandbox is gone");
    log_->ran.push_back(code.code);
    auto outcome = script_(code);
    if (outcome)
      done(std::move(*outcome));
    else
      hanging_ = std::move(done);
    return {};
  }

  result<void> put(sandbox_file file, put_fn done) override {
    if (gone)
      return fail(errc::unavailable, "the sandbox is gone");
    files[file.path] = std::move(file.bytes);
    done({});
    return {};
  }

  result<void> get(std::string path, std::size_t max_bytes, got_fn done) override {
    if (gone)
      return fail(errc::unavailable, "the sandbox is gone");
    auto it = files.find(path);
    if (it == files.end())
      done(fail(errc::not_found, path + ": No such file or directory"));
    else if (it->second.size() > max_bytes)
      done(fail(errc::over_budget, path + ": larger than allowed"));
    else
      done(it->second);
    return {};
  }

  result<void> shell(shell_command command, shell_fn done) override {
    if (gone)
      return fail(errc::unavailable, "the sandbox is gone");
    commands.push_back(std::move(command));
    done(shell_answer);
    return {};
  }

  result<void> fork(std::vector<sandbox_limits>, forked_fn) override {
    return fail(errc::denied, "sandboxes of this executor cannot be branched");
  }

  void answer(call_id id, result<json> value) override { answers.emplace_back(id, value); }
  void interrupt() override { ++interrupts; }

  void close(closed_fn done) override {
    if (!std::exchange(closed_, true)) {
      ++log_->closed;
      --log_->live;
    }
    if (hanging_) {
      snippet_outcome o;
      o.end = snippet_end::killed;
      o.reason = "closed";
      std::exchange(hanging_, nullptr)(std::move(o));
    }
    close_report r;
    r.processes_gone = leaves.empty();
    r.mounts_gone = true;
    r.detail = leaves;
    if (done)
      done(r);
  }

  std::string_view isolation() const noexcept override { return "none (scripted)"; }

  /// Ends the snippet that hangs.
  void finish_snippet(snippet_outcome o) { std::exchange(hanging_, nullptr)(std::move(o)); }

  /// As if the running code had called a tool.
  void call_tool(code_call c) { call_(std::move(c)); }

  std::vector<std::pair<call_id, result<json>>> answers;
  std::map<std::string, std::string> files;  ///< by path
  std::vector<shell_command> commands;
  shell_outcome shell_answer;  ///< to every command
  int interrupts = 0;
  bool gone = false;   ///< it died while it was idle
  std::string leaves;  ///< what its close could not end

private:
  snippet_script script_;
  std::shared_ptr<script_log> log_;
  output_fn output_;
  call_fn call_;
  done_fn hanging_;
  bool closed_ = false;
};

class scripted_executor final : public executor {
public:
  explicit scripted_executor(snippet_script script) : script_{std::move(script)} {}

  void open(sandbox_spec spec, opened_fn done) override {
    specs.push_back(std::move(spec));
    if (fail_next > 0) {
      --fail_next;
      done(fail(errc::unavailable, "no sandbox today"));
      return;
    }
    if (hold) {
      held.push_back(std::move(done));
      return;
    }
    done(make());
  }

  /// Answers the oldest held open.
  void release() {
    auto done = std::move(held.front());
    held.pop_front();
    done(make());
  }

  /// The same, with an error.
  void refuse(error why) {
    auto done = std::move(held.front());
    held.pop_front();
    done(fail(std::move(why)));
  }

  executor_info info() const override { return {"scripted", "none", {}, "none"}; }
  executor_stats stats() const override { return {}; }

  std::shared_ptr<script_log> log = std::make_shared<script_log>();
  std::vector<std::shared_ptr<scripted_sandbox>> boxes;
  std::vector<sandbox_spec> specs;
  std::deque<opened_fn> held;
  bool hold = false;
  int fail_next = 0;

private:
  std::shared_ptr<sandbox> make() {
    ++log->opened;
    log->peak = std::max(log->peak, ++log->live);
    boxes.push_back(std::make_shared<scripted_sandbox>(script_, log));
    return boxes.back();
  }

  snippet_script script_;
};

inline snippet_outcome printed(std::string logs) {
  snippet_outcome o;
  o.logs = std::move(logs);
  return o;
}

inline snippet_outcome answered(json value, std::string text) {
  snippet_outcome o;
  o.is_final = true;
  o.result = troupe::value{std::move(value), std::move(text)};
  return o;
}

inline snippet_outcome ended(snippet_end how, std::string reason = {}) {
  snippet_outcome o;
  o.end = how;
  o.reason = std::move(reason);
  return o;
}

}  // namespace troupe::test
