#pragma once
// An executor on its own reactor, with blocking calls for tests, and a look at what it leaves.

#include "executors/executor.hpp"
#include "runtime/net/reactor.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace troupe::test {

/// What this process has of the machine, to compare before and after.
struct footprint {
  std::size_t descriptors = 0;
  std::set<int> children;
  std::size_t mounts = 0;
  std::size_t groups = 0;  ///< control groups that bear its pid

  bool operator==(const footprint&) const = default;
};

[[nodiscard]] footprint take_footprint();

/// True when our child `pid` is some jail's first process: it has a number in there too.
[[nodiscard]] bool is_first_process(int pid);

inline constexpr std::chrono::seconds patience{40};

/// Waits for what an executor promises. Throws when nothing comes.
template <class T>
T wait_for(std::future<T>& f, const char* what) {
  if (f.wait_for(patience) != std::future_status::ready)
    throw std::runtime_error{std::string{"nothing came of "} + what};
  return f.get();
}

/// Answers tool calls in tests, on the reactor's thread.
using tool_fn = std::function<result<json>(const json& arguments)>;

class executor_fixture {
public:
  using make_fn = std::function<std::unique_ptr<executor>(reactor&)>;

  explicit executor_fixture(const make_fn& make);
  ~executor_fixture();
  executor_fixture(const executor_fixture&) = delete;
  executor_fixture& operator=(const executor_fixture&) = delete;

  [[nodiscard]] result<std::shared_ptr<sandbox>> try_open(sandbox_spec spec = {});
  [[nodiscard]] std::shared_ptr<sandbox> open(sandbox_spec spec = {});

  /// With tools that answer at once.
  [[nodiscard]] std::shared_ptr<sandbox> open_with(std::map<std::string, tool_fn> tools,
                                                   sandbox_spec spec);

  snippet_outcome run(sandbox& s, snippet code);
  snippet_outcome run(sandbox& s, std::string code);
  [[nodiscard]] result<void> put(sandbox& s, std::string path, std::string bytes);
  [[nodiscard]] result<std::string> get(sandbox& s, std::string path,
                                        std::size_t max_bytes = 64u << 20);
  shell_outcome shell(sandbox& s, shell_command command);
  shell_outcome sh(sandbox& s, std::string script);
  [[nodiscard]] std::vector<result<std::shared_ptr<sandbox>>>
  fork(sandbox& s, std::vector<sandbox_limits> branches);
  [[nodiscard]] std::shared_ptr<sandbox> branch(sandbox& s, sandbox_limits limits = {});
  [[nodiscard]] close_report close(sandbox& s);

  /// Lets time pass while the reactor works.
  void pause(millis span);

  reactor io;
  std::unique_ptr<executor> backend;
  bool checkpoints = false;  ///< of the sandboxes that `open` makes: without, a kill is the end

private:
  footprint before_;
};

/// A spec whose tools take these parameters, each of any type, all required.
[[nodiscard]] tool_spec make_tool(std::string name, const std::vector<std::string>& parameters);
[[nodiscard]] tool_spec final_answer_spec();

/// The outcome in one line, for CHECK messages and comparisons.
[[nodiscard]] std::string describe(const snippet_outcome& o);
[[nodiscard]] std::string describe(const shell_outcome& o);

/// The compact JSON of a result, "" without one.
[[nodiscard]] std::string tagged(const snippet_outcome& o);

}  // namespace troupe::test
