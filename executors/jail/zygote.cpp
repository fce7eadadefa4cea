// The zygote: holds a ready Python, and turns each request into a sandbox. A Python module, which
// launcher.cpp has python3 load: the distribution's own program runs snippets about a quarter
// faster than its libpython (docs/measurements.md). Runs no user code, keeps no secret, starts no
// thread. Ends when the runtime's socket closes.

#include "executors/jail/caps.hpp"
#include "executors/jail/frozen_memory.hpp"
#include "executors/jail/hello.hpp"
#include "executors/jail/init.hpp"
#include "executors/jail/python.hpp"

#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace troupe::jail {
namespace {

constexpr int failed = 71;  // EX_OSERR

unique_fd store;  ///< for the memory, until that is ready

/// The descriptors that came with a message.
std::vector<unique_fd> take_descriptors(msghdr& message) {
  std::vector<unique_fd> out;
  auto* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
    return out;
  int fds[max_request_fds];
  auto count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  std::memcpy(fds, CMSG_DATA(header), count * sizeof(int));
  for (std::size_t i = 0; i < count; ++i)
    out.emplace_back(fds[i]);
  return out;
}

/// Receives a request and its descriptors. False when the runtime has gone.
bool receive(sandbox_parts& parts) {
  iovec data{&parts.request, sizeof parts.request};
  alignas(cmsghdr) char space[CMSG_SPACE(max_request_fds * sizeof(int))];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  auto size = ::recvmsg(zygote_fd, &message, MSG_CMSG_CLOEXEC);
  if (size <= 0)
    return false;
  auto fds = take_descriptors(message);
  const auto& r = parts.request;
  if (size != sizeof r || r.task_fds > max_task_fds
      || fds.size() != channel_fds + r.task_fds + r.into_group)
    return true;
  parts.data = std::move(fds[0]);
  parts.control = std::move(fds[1]);
  parts.output = std::move(fds[2]);
  for (std::size_t i = 0; i < r.task_fds; ++i)
    parts.tasks[i] = std::move(fds[channel_fds + i]);
  if (r.into_group != 0)
    parts.group = std::move(fds.back());
  return true;
}

void send_reply(const spawn_reply& reply, int pidfd) {
  auto copy = reply;
  iovec data{&copy, sizeof copy};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (pidfd >= 0) {
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &pidfd, sizeof pidfd);
  }
  must(::sendmsg(zygote_fd, &message, MSG_NOSIGNAL) >= 0, "send a reply");
}

/// Clones the sandbox and lets it start. Throws setup_error; `reply.pid` is set once there is a
/// process, which the runtime has to reap also then.
void spawn(sandbox_parts parts, birth_record& birth, spawn_reply& reply, unique_fd& pidfd) {
  must(static_cast<bool>(parts.output), "read a request");
  int start[2];
  must(::pipe2(start, O_CLOEXEC) == 0, "pipe2");
  unique_fd go{start[1]};
  parts.start.reset(start[0]);
  int raw_pidfd = -1;
  birth.pid = 0;
  birth.request = parts.request.id;
  auto pid = clone_sandbox(raw_pidfd, birth, parts.group.get(), parts.request.network != 0);
  if (pid < 0)
    give_up_namespaces();
  if (pid == 0) {
    go.reset();
    ::close(zygote_fd);
    run_init(std::move(parts));
  }
  reply.pid = pid;
  pidfd.reset(raw_pidfd);
  write_id_maps(pid, parts.mode, parts.request);  // when it throws, the child reads no start
  must(::write(go.get(), "g", 1) == 1, "start the sandbox");
}

/// The page is not for the sandboxes: their clone leaves it out.
birth_record& map_birth_record() {
  auto* page =
    ::mmap(nullptr, sizeof(birth_record), PROT_READ | PROT_WRITE, MAP_SHARED, birth_fd, 0);
  must(page != MAP_FAILED, "map the birth record");
  must(::madvise(page, sizeof(birth_record), MADV_DONTFORK) == 0, "keep the birth record");
  ::close(birth_fd);
  return *static_cast<birth_record*>(page);
}

/// Compiled once.
struct filters {
  seccomp_filter plain{false};
  seccomp_filter network{true};
};

void serve(privilege mode, const filters& all, birth_record& birth) {
  for (;;) {
    sandbox_parts parts;
    parts.mode = mode;
    if (!receive(parts))
      return;
    parts.filter = parts.request.network != 0 ? &all.network : &all.plain;
    auto id = parts.request.id;
    unique_fd pidfd;
    spawn_reply reply;
    try {
      spawn(std::move(parts), birth, reply, pidfd);
    } catch (const setup_error& e) {
      reply.error = e.number() != 0 ? e.number() : EINVAL;
      std::strncpy(reply.stage, e.what(), sizeof reply.stage - 1);
    }
    reply.id = id;
    send_reply(reply, pidfd.get());
  }
}

/// A large request has malloc merge and sort all that was freed so far. Else the first one in each
/// sandbox would, and copy 130 pages for it.
void sort_free_memory() {
  constexpr std::size_t below_mmap_threshold = 100'000;
  auto* volatile large = ::malloc(below_mmap_threshold);
  ::free(large);
}

/// Of the zygote, which forks: its threads would be missing in each sandbox.
int count_threads() {
  std::error_code ec;
  std::filesystem::directory_iterator tasks{"/proc/self/task", ec};
  return ec ? 1 : static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

}  // namespace

int prepare_zygote(const std::vector<std::string>& modules) {
  ::close(module_fd);
  ::prctl(PR_SET_NAME, "troupe-zygote");
  ::mallopt(M_ARENA_MAX, 2);  // an arena reserves 64 MB of a sandbox's address space
  ::umask(022);
  if (::fcntl(store_fd, F_SETFD, FD_CLOEXEC) == 0)
    store.reset(store_fd);
  gather_objects();
  try {
    load_worker(modules);
    if (count_threads() > 1)
      throw setup_error{"a module that is imported ahead has started a thread", 0};
    return 0;
  } catch (const setup_error& e) {
    send_failure(e);
    return failed;
  }
}

int run_zygote(privilege mode) {
  try {
    auto& birth = map_birth_record();
    filters all;
    reduce_zygote(mode);
    sort_free_memory();
    auto version = python_version();
    freeze_memory(store.get());
    store.reset();
    send_ready(version, mode);
    serve(mode, all, birth);
    return 0;
  } catch (const setup_error& e) {
    send_failure(e);
    return failed;
  }
}

}  // namespace troupe::jail
