#include "tests/executors/contract/contract.hpp"

#include "executors/jail/jail_executor.hpp"
#include "executors/process/process_executor.hpp"

#include <catch2/catch_test_case_info.hpp>
#include <catch2/interfaces/catch_interfaces_test_invoker.hpp>
#include <catch2/internal/catch_test_registry.hpp>

#include <array>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <grp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::unique_ptr<executor> make_jail(reactor& io, const fs::path&) {
  return std::make_unique<jail_executor>(io);
}

std::unique_ptr<executor> make_process(reactor& io, const fs::path& scratch) {
  return std::make_unique<process_executor>(io, process_options{.directory = scratch});
}

constexpr std::array backends = {
  contract_backend{"jail", false, make_jail},
  contract_backend{"jail rootless", true, make_jail},
  contract_backend{"process", false, make_process},
  contract_backend{"process rootless", true, make_process},
};

constexpr int nobody = 65'534;
constexpr int skipped = 4;  // Catch2's exit code when all that ran was skipped

/// The case's name as a pattern that matches it alone.
std::string as_pattern(const std::string& name) {
  std::string out;
  for (auto c : name) {
    if (c == ',' || c == '[' || c == ']' || c == '\\' || c == '*' || c == '"' || c == '~')
      out += '\\';
    out += c;
  }
  return out;
}

/// A reactor's thread does not survive a fork: the child starts from a clean state.
void run_without_root(const std::string& name) {
  auto pattern = as_pattern(name);
  auto child = ::fork();
  if (child == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0
        || ::setresuid(nobody, nobody, nobody) != 0)
      ::_exit(3);
    ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // else /proc/self belongs to root
    ::execl("/proc/self/exe", "contract_test", pattern.c_str(), static_cast<char*>(nullptr));
    ::_exit(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == skipped)
    SKIP("the backend does not promise this");
  CHECK(WEXITSTATUS(status) == 0);
}

class contract_invoker final : public Catch::ITestInvoker {
public:
  contract_invoker(const contract_backend& backend, void (*body)(contract_fixture&),
                   std::string name)
    : backend_{backend}, body_{body}, name_{std::move(name)} {}

  void invoke() const override {
    if (backend_.without_root && ::geteuid() == 0) {
      run_without_root(name_);
      return;
    }
    contract_fixture fx{backend_};
    body_(fx);
  }

private:
  const contract_backend& backend_;
  void (*body_)(contract_fixture&);
  std::string name_;
};

}  // namespace

contract_case::contract_case(void (*body)(contract_fixture&), const char* sentence,
                             const char* tags, const char* file, unsigned line) {
  for (const auto& b : backends) {
    auto name = std::string{b.name} + ": " + sentence;
    Catch::Detail::unique_ptr<Catch::ITestInvoker> invoker{new contract_invoker{b, body, name}};
    Catch::AutoReg registered{std::move(invoker), {file, line}, "", {name, tags}};
  }
}

struct contract_fixture::scratch_dir {
  scratch_dir() {
    auto name = (fs::temp_directory_path() / "troupe-contract-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::runtime_error{"mkdtemp: " + errno_text(errno)};
    path = name;
  }
  ~scratch_dir() {
    CHECK(fs::is_empty(path));
    std::error_code ec;
    fs::remove_all(path, ec);
  }
  fs::path path;
};

contract_fixture::contract_fixture(const contract_backend& b)
  : contract_fixture{b, std::make_unique<scratch_dir>()} {}

contract_fixture::contract_fixture(const contract_backend& b, std::unique_ptr<scratch_dir> dir)
  : executor_fixture{[&](reactor& r) { return b.make(r, dir->path); }}, made_by_{b},
    scratch_{std::move(dir)} {}

contract_fixture::~contract_fixture() {
  backend.reset();  // before the scratch directory is looked at
}

void contract_fixture::needs(bool ability) const {
  if (!ability)
    SKIP("this backend does not promise it");
}

std::shared_ptr<sandbox> contract_fixture::open_seen(processes& seen, sandbox_spec spec) {
  static_cast<void>(close(*open()));  // whatever serves all sandboxes is there now
  auto before = take_footprint().children;
  auto s = open(std::move(spec));
  for (auto pid : take_footprint().children)
    if (!before.contains(pid))
      seen.first = pid;
  REQUIRE(seen.first != 0);
  auto inner = children_of(seen.first);
  REQUIRE(inner.size() == 1);
  seen.worker = *inner.begin();
  return s;
}

bool contract_fixture::is_gone(sandbox& s) {
  return eventually([&] {
    std::promise<void> ended;
    auto accepted = s.run(snippet{.code = "1"}, [&](const snippet_outcome&) { ended.set_value(); });
    if (accepted)
      ended.get_future().wait();
    return !accepted && accepted.error().code == errc::unavailable;
  });
}

std::unique_ptr<executor> contract_fixture::make_another(reactor& r) const {
  return made_by_.make(r, scratch_->path);
}

bool contract_fixture::scratch_is_empty() const {
  return fs::is_empty(scratch_->path);
}

std::set<int> descendants_of(int pid) {
  auto all = children_of(pid);
  for (auto child : children_of(pid))
    all.merge(descendants_of(child));
  return all;
}

sandbox_spec spec_with(std::vector<tool_spec> tools) {
  sandbox_spec spec;
  spec.tools = std::move(tools);
  return spec;
}

std::set<int> children_of(int pid) {
  std::set<int> pids;
  std::error_code ec;
  for (const auto& task : fs::directory_iterator{"/proc/" + std::to_string(pid) + "/task", ec}) {
    std::ifstream in{task.path() / "children"};
    for (int child = 0; in >> child;)
      pids.insert(child);
  }
  return pids;
}

bool runs(int pid) {
  std::ifstream in{"/proc/" + std::to_string(pid) + "/stat"};
  std::string line;
  return std::getline(in, line) && line.find(") Z ") == std::string::npos;
}

millis since(time_point start) {
  return std::chrono::duration_cast<millis>(steady_clock::now() - start);
}

bool eventually(const std::function<bool()>& condition) {
  for (auto start = steady_clock::now(); since(start) < 20s;) {
    if (condition())
      return true;
    std::this_thread::sleep_for(5ms);
  }
  return condition();
}

}  // namespace troupe::test
