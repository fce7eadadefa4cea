#include "tests/jail/jail_fixture.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace troupe::test {
namespace {

constexpr std::chrono::seconds patience{40};

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

template <class T>
T wait_for(std::future<T>& f, const char* what) {
  if (f.wait_for(patience) != std::future_status::ready)
    throw std::runtime_error{std::string{"nothing came of "} + what};
  return f.get();
}

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

jail_fixture::jail_fixture(jail_options options) : before_{take_footprint()} {
  jail = std::make_unique<jail_executor>(io, std::move(options));
}

jail_fixture::~jail_fixture() {
  jail.reset();
  auto left = take_footprint();
  CHECK(left.children == before_.children);
  CHECK(left.descriptors == before_.descriptors);
  CHECK(left.mounts == before_.mounts);
  CHECK(left.groups == before_.groups);
}

result<std::shared_ptr<sandbox>> jail_fixture::try_open(sandbox_spec spec) {
  auto opened = std::make_shared<std::promise<result<std::shared_ptr<sandbox>>>>();
  auto waiting = opened->get_future();
  spec.checkpoints = checkpoints;
  spec.limits.restore_timeout = patience;  // a busy machine must not decide
  jail->open(std::move(spec), [opened](auto s) { opened->set_value(std::move(s)); });
  return wait_for(waiting, "open");
}

std::shared_ptr<sandbox> jail_fixture::open(sandbox_spec spec) {
  auto s = try_open(std::move(spec));
  if (!s)
    throw std::runtime_error{"open: " + to_string(s.error())};
  return *s;
}

std::shared_ptr<sandbox> jail_fixture::open_with(std::map<std::string, tool_fn> tools,
                                                 sandbox_spec spec) {
  auto s = open(std::move(spec));
  s->listen({}, [weak = std::weak_ptr{s}, tools = std::move(tools)](code_call call) {
    if (auto live = weak.lock())
      live->answer(call.id, tools.at(call.tool)(call.arguments));
  });
  return s;
}

snippet_outcome jail_fixture::run(sandbox& s, snippet code) {
  auto done = std::make_shared<std::promise<snippet_outcome>>();
  auto waiting = done->get_future();
  if (code.hard_deadline == never)
    code.hard_deadline = after(steady_clock::now(), std::chrono::seconds{30});
  auto accepted =
    s.run(std::move(code), [done](snippet_outcome o) { done->set_value(std::move(o)); });
  if (!accepted)
    throw std::runtime_error{"run: " + to_string(accepted.error())};
  return wait_for(waiting, "run");
}

snippet_outcome jail_fixture::run(sandbox& s, std::string code) {
  return run(s, snippet{.code = std::move(code)});
}

close_report jail_fixture::close(sandbox& s) {
  auto closed = std::make_shared<std::promise<close_report>>();
  auto waiting = closed->get_future();
  s.close([closed](close_report r) { closed->set_value(std::move(r)); });
  return wait_for(waiting, "close");
}

tool_spec make_tool(std::string name, std::vector<std::string> parameters) {
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

std::string tagged(const snippet_outcome& o) {
  return o.result ? dump_json(o.result->tagged) : "";
}

}  // namespace troupe::test
