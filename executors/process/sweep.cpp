#include "executors/process/sweep.hpp"

#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fts.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::process {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto patience = 5s;
constexpr long wait_ns = 20'000'000;

struct entry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
};

/// The processes that run; a zombie has ended.
std::vector<entry> running_processes() {
  std::vector<entry> all;
  auto* proc = ::opendir("/proc");
  if (proc == nullptr)
    return all;
  while (auto* file = ::readdir(proc)) {
    if (std::isdigit(static_cast<unsigned char>(file->d_name[0])) == 0)
      continue;
    std::ifstream in{std::string{"/proc/"} + file->d_name + "/stat"};
    std::string line;
    std::getline(in, line, '\0');
    auto name_end = line.rfind(')');  // a name may have any character
    if (name_end == std::string::npos)
      continue;
    std::istringstream rest{line.substr(name_end + 1)};
    entry e;
    char state = 0;
    pid_t group = 0;
    e.pid = std::atoi(file->d_name);
    if (rest >> state >> e.parent >> group >> e.session && state != 'Z' && state != 'X')
      all.push_back(e);
  }
  ::closedir(proc);
  return all;
}

void kill_descendants() {
  std::set<pid_t> ours{::getpid()};
  auto all = running_processes();
  for (auto grown = true; std::exchange(grown, false);)
    for (const auto& e : all)
      if (ours.contains(e.parent) && ours.insert(e.pid).second)
        grown = true;
  ours.erase(::getpid());
  for (auto pid : ours)
    ::kill(pid, SIGKILL);
}

void wait_for_a_child() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  timespec span{0, wait_ns};
  ::sigtimedwait(&child, nullptr, &span);
}

bool names_directory(pid_t pid, const std::string& directory) {
  std::ifstream in{"/proc/" + std::to_string(pid) + "/environ", std::ios::binary};
  std::string text(128u << 10, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text.find("=" + directory + "/") != std::string::npos;
}

void remove_entry(FTS* tree, FTSENT* e, bool& all) {
  switch (e->fts_info) {
  case FTS_D:
    if (::access(e->fts_accpath, R_OK | W_OK | X_OK) != 0)
      ::chmod(e->fts_accpath, 0700);
    break;
  case FTS_DNR:
    // It was looked at before its mode was mended; once more, and only once.
    if (e->fts_number++ == 0 && ::chmod(e->fts_accpath, 0700) == 0)
      ::fts_set(tree, e, FTS_AGAIN);
    else
      all = ::rmdir(e->fts_accpath) == 0 && all;
    break;
  case FTS_DP:
    all = ::rmdir(e->fts_accpath) == 0 && all;
    break;
  default:
    all = (::unlink(e->fts_accpath) == 0 || errno == ENOENT) && all;
  }
}

}  // namespace

bool end_descendants(pid_t leader) {
  if (leader > 0)
    ::kill(-leader, SIGKILL);
  for (auto start = clock::now(); clock::now() - start < patience;) {
    for (;;) {
      auto pid = ::waitpid(-1, nullptr, WNOHANG);
      if (pid < 0 && errno == ECHILD)
        return true;
      if (pid <= 0)
        break;
    }
    kill_descendants();
    wait_for_a_child();
  }
  return false;
}

bool end_session(pid_t session, const std::string& directory) {
  for (auto start = clock::now(); clock::now() - start < patience;) {
    auto left = false;
    for (const auto& e : running_processes()) {
      if (e.pid == ::getpid()
          || !((session > 0 && e.session == session) || names_directory(e.pid, directory)))
        continue;
      left = true;
      ::kill(e.pid, SIGKILL);
    }
    if (!left)
      return true;
    timespec span{0, wait_ns};
    ::nanosleep(&span, nullptr);
  }
  return false;
}

bool remove_tree(const std::string& directory) {
  auto path = directory;
  char* const paths[] = {path.data(), nullptr};
  auto* tree = ::fts_open(paths, FTS_PHYSICAL | FTS_XDEV, nullptr);
  if (tree == nullptr)
    return false;
  auto all = true;
  errno = 0;
  while (auto* e = ::fts_read(tree))
    remove_entry(tree, e, all);
  all = errno == 0 && all;
  ::fts_close(tree);
  return all && ::access(directory.c_str(), F_OK) != 0;
}

}  // namespace troupe::process
