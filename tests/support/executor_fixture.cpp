#include "tests/support/executor_fixture.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace troupe::test {
namespace {

std::size_t count_lines(const char* path) {
  std::ifstream in{path};
  std::string line;
  std::size_t n = 0;
  while (std::getline(in, line))
    ++n;
  return n;
}

std::set<int> children_of_all_threads() {
  std::set<int> pids;
  for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
    std::ifstream in{task.path() / "children"};
    for (int pid = 0; in >> pid;)
      pids.insert(pid);
  }
  return pids;
}

std::size_t count_own_groups() {
  namespace fs = std::filesystem;
  auto name = "troupe." + std::to_string(::getpid()) + ".";
  std::size_t n = 0;
  std::error_code ec;
  fs::recursive_directory_iterator it{"/sys/fs/cgroup",
                                      fs::directory_options::skip_permission_denied, ec};
  for (; !ec && it != fs::recursive_directory_iterator{}; it.increment(ec))
    if (it->path().filename().string().starts_with(name))
      ++n;
  return n;
}

/// Calls `ask` with a callback, and waits for what comes to it.
template <class T, class Ask>
T blocking(const char* what, Ask ask) {
  auto done = std::make_shared<std::promise<T>>();
  auto waiting = done->get_future();
  result<void> accepted = ask([done](T x) { done->set_value(std::move(x)); });
  if (!accepted)
    throw std::runtime_error{std::string{what} + ": " + to_string(accepted.error())};
  return wait_for(waiting, what);
}

constexpr std::chrono::seconds give_up{30};

}  // namespace

footprint take_footprint() {
  footprint f;
  for ([[maybe_unused]] const auto& fd : std::filesystem::directory_iterator{"/proc/self/fd"})
    ++f.descriptors;
  f.children = children_of_all_threads();
  f.mounts = count_lines("/proc/self/mountinfo");
  f.groups = count_own_groups();
  return f;
}

bool is_first_process(int pid) {
  std::ifstream status{"/proc/" + std::to_string(pid) + "/status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("NSpid:"))
      return std::ranges::count(line, '\t') > 1;
  return false;
}

executor_fixture::executor_fixture(const make_fn& make) : before_{take_footprint()} {
  backend = make(io);
}

executor_fixture::~executor_fixture() {
  backend.reset();
  auto left = take_footprint();
  CHECK(left.children == before_.children);
  CHECK(left.descriptors == before_.descriptors);
  CHECK(left.mounts == before_.mounts);
  CHECK(left.groups == before_.groups);
}

result<std::shared_ptr<sandbox>> executor_fixture::try_open(sandbox_spec spec) {
  spec.checkpoints = checkpoints;
  spec.limits.restore_timeout = patience;  // a busy machine must not decide
  return blocking<result<std::shared_ptr<sandbox>>>("open", [&](auto done) {
    backend->open(std::move(spec), std::move(done));
    return result<void>{};
  });
}

std::shared_ptr<sandbox> executor_fixture::open(sandbox_spec spec) {
  auto s = try_open(std::move(spec));
  if (!s)
    throw std::runtime_error{"open: " + to_string(s.error())};
  return *s;
}

std::shared_ptr<sandbox> executor_fixture::open_with(std::map<std::string, tool_fn> tools,
                                                     sandbox_spec spec) {
  auto s = open(std::move(spec));
  s->listen({}, [weak = std::weak_ptr{s}, tools = std::move(tools)](const code_call& call) {
    if (auto live = weak.lock())
      live->answer(call.id, tools.at(call.tool)(call.arguments));
  });
  return s;
}

snippet_outcome executor_fixture::run(sandbox& s, snippet code) {
  if (code.hard_deadline == never)
    code.hard_deadline = after(steady_clock::now(), give_up);
  return blocking<snippet_outcome>(
    "run", [&](auto done) { return s.run(std::move(code), std::move(done)); });
}

snippet_outcome executor_fixture::run(sandbox& s, std::string code) {
  return run(s, snippet{.code = std::move(code)});
}

result<void> executor_fixture::put(sandbox& s, std::string path, std::string bytes) {
  return blocking<result<void>>("put", [&](auto done) {
    return s.put({std::move(path), std::move(bytes)}, std::move(done));
  });
}

result<std::string> executor_fixture::get(sandbox& s, std::string path, std::size_t max_bytes) {
  return blocking<result<std::string>>(
    "get", [&](auto done) { return s.get(std::move(path), max_bytes, std::move(done)); });
}

shell_outcome executor_fixture::shell(sandbox& s, shell_command command) {
  if (command.hard_deadline == never)
    command.hard_deadline = after(steady_clock::now(), give_up);
  return blocking<shell_outcome>(
    "shell", [&](auto done) { return s.shell(std::move(command), std::move(done)); });
}

shell_outcome executor_fixture::sh(sandbox& s, std::string script) {
  return shell(s, shell_command{.argv = {"sh", "-c", std::move(script)}});
}

std::vector<result<std::shared_ptr<sandbox>>>
executor_fixture::fork(sandbox& s, std::vector<sandbox_limits> branches) {
  for (auto& limits : branches)
    limits.restore_timeout = patience;
  return blocking<std::vector<result<std::shared_ptr<sandbox>>>>(
    "fork", [&](auto done) { return s.fork(std::move(branches), std::move(done)); });
}

std::shared_ptr<sandbox> executor_fixture::branch(sandbox& s, sandbox_limits limits) {
  auto made = fork(s, {limits}).front();
  if (!made)
    throw std::runtime_error{"fork: " + to_string(made.error())};
  return *made;
}

close_report executor_fixture::close(sandbox& s) {
  return blocking<close_report>("close", [&](auto done) {
    s.close(std::move(done));
    return result<void>{};
  });
}

void executor_fixture::pause(millis span) {
  std::promise<void> later;
  io.in(span, [&] { later.set_value(); });
  later.get_future().wait();
}

tool_spec make_tool(std::string name, const std::vector<std::string>& parameters) {
  tool_spec t;
  t.name = std::move(name);
  t.description = "A tool of a test.";
  auto properties = ordered_json::object();
  auto required = ordered_json::array();
  for (const auto& p : parameters) {
    properties[p] = ordered_json::object();
    required.push_back(p);
  }
  t.parameters = {{"type", "object"}, {"properties", properties}, {"required", required}};
  return t;
}

tool_spec final_answer_spec() {
  auto t = make_tool("final_answer", {"answer"});
  t.ends_run = true;
  return t;
}

std::string describe(const snippet_outcome& o) {
  std::string text{to_string(o.end)};
  if (o.error)
    text += " " + o.error->type + ": " + o.error->message;
  if (!o.reason.empty())
    text += " (" + o.reason + ")";
  return text;
}

std::string describe(const shell_outcome& o) {
  auto text = std::string{to_string(o.end)} + " " + std::to_string(o.status);
  if (!o.reason.empty())
    text += " (" + o.reason + ")";
  return text;
}

std::string tagged(const snippet_outcome& o) {
  return o.result ? dump_json(o.result->tagged) : "";
}

}  // namespace troupe::test
