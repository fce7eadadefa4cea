#include "executors/jail/zygote_client.hpp"

#include "executors/channel.hpp"
#include "runtime/core/log.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>
#include <cstring>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

constexpr unsigned max_deaths = 8;
constexpr std::size_t max_complaint = 4u << 10;

/// A sandbox takes it milliseconds; large modules many seconds, on a busy machine.
constexpr millis silence_limit{3'000};
constexpr millis start_limit{60'000};

/// posix_spawn's two option objects, filled for a child that has nothing of ours but four
/// descriptors: default signals, none blocked, everything else closed.
class spawn_options {
public:
  spawn_options(int socket, int birth, int complaints) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_addopen(&files_, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files_, 1, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files_, complaints, 2);
    ::posix_spawn_file_actions_adddup2(&files_, socket, zygote_fd);
    ::posix_spawn_file_actions_adddup2(&files_, birth, birth_fd);
    ::posix_spawn_file_actions_addclosefrom_np(&files_, birth_fd + 1);
    ::posix_spawnattr_init(&attributes_);
    sigset_t set;
    sigfillset(&set);
    ::posix_spawnattr_setsigdefault(&attributes_, &set);
    sigemptyset(&set);
    ::posix_spawnattr_setsigmask(&attributes_, &set);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK
                                               | POSIX_SPAWN_SETPGROUP);
  }
  ~spawn_options() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  spawn_options(const spawn_options&) = delete;
  spawn_options& operator=(const spawn_options&) = delete;

  int spawn(pid_t& pid, const std::string& path, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), path);
    std::vector<char*> argv;
    for (auto& a : arguments)
      argv.push_back(a.data());
    argv.push_back(nullptr);
    char* no_environment[] = {nullptr};
    return ::posix_spawn(&pid, path.c_str(), &files_, &attributes_, argv.data(), no_environment);
  }

private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

/// A duplicate above the descriptors that the spawn itself writes to.
unique_fd above_standard(int fd) {
  return unique_fd{::fcntl(fd, F_DUPFD_CLOEXEC, birth_fd + 1)};
}

/// The page of a birth_record, as the runtime sees it.
class birth_page {
public:
  birth_page() : fd_{::memfd_create("troupe-birth", MFD_CLOEXEC)} {
    if (fd_ && ::ftruncate(fd_.get(), sizeof(birth_record)) == 0)
      page_ =
        ::mmap(nullptr, sizeof(birth_record), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  }
  ~birth_page() {
    if (page_ != MAP_FAILED)
      ::munmap(page_, sizeof(birth_record));
  }
  birth_page(const birth_page&) = delete;
  birth_page& operator=(const birth_page&) = delete;

  [[nodiscard]] explicit operator bool() const noexcept { return page_ != MAP_FAILED; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] birth_record read() const noexcept {
    birth_record r;
    std::memcpy(&r, page_, sizeof r);
    return r;
  }

private:
  unique_fd fd_;
  void* page_ = MAP_FAILED;
};

error system_error(std::string what) {
  auto number = errno;
  return {errc::unavailable, std::move(what) + ": " + errno_text(number)};
}

std::string_view line_value(std::string_view text, std::string_view key) {
  auto at = text.find("\n" + std::string{key} + " ");
  if (at == std::string_view::npos)
    return {};
  text.remove_prefix(at + key.size() + 2);
  return text.substr(0, text.find('\n'));
}

std::string how_it_ended(int status) {
  return WIFEXITED(status) ? "ended with status " + std::to_string(WEXITSTATUS(status))
                           : "was killed by signal " + std::to_string(WTERMSIG(status));
}

}  // namespace

struct zygote_client::process {
  explicit process(reactor& io) : socket{io}, complaints{io}, exit{io} {}

  pid_t pid = 0;
  unsigned number = 0;
  channel socket;
  channel complaints;  ///< its stderr
  channel exit;        ///< pidfd
  birth_page birth;
  std::string said;
  bool ready = false;
  time_point heard = steady_clock::now();  ///< when it last sent a message, or was started

  /// Takes what is on its stderr; false when there was nothing.
  bool hear() {
    char buffer[1024];
    auto size = ::read(complaints.fd(), buffer, sizeof buffer);
    if (size <= 0)
      return false;
    said.append(buffer, static_cast<std::size_t>(size));
    if (said.size() > max_complaint)
      said.erase(0, said.size() - max_complaint);
    return true;
  }
};

zygote_client::zygote_client(reactor& io, std::string path, std::vector<std::string> arguments,
                             hello_fn on_hello)
  : io_{io}, path_{std::move(path)}, arguments_{std::move(arguments)},
    hello_fn_{std::move(on_hello)} {}

zygote_client::~zygote_client() = default;

void zygote_client::spawn(spawn_request message, channels_fn make, spawn_fn done) {
  message.id = ++last_id_;
  if (requests_.empty())
    asked_ = steady_clock::now();
  requests_.push_back({message, std::move(make), std::move(done)});
  watch_silence();
  if (closing_) {
    fail_all({errc::unavailable, "the jail is closing"});
    return;
  }
  if (!process_) {
    if (auto started = start(); !started) {
      fail_all(started.error());
      return;
    }
  }
  send_open_requests();
}

result<void> zygote_client::start() {
  int sockets[2];
  int pipes[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
    return fail(system_error("socketpair for the zygote"));
  unique_fd ours{sockets[0]}, theirs{sockets[1]};
  if (::pipe2(pipes, O_CLOEXEC) != 0)
    return fail(system_error("pipe for the zygote"));
  unique_fd read_end{pipes[0]}, write_end{pipes[1]};
  ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  auto socket = above_standard(theirs.get());
  auto complaints = above_standard(write_end.get());
  auto p = std::make_shared<process>(io_);
  if (!p->birth)
    return fail(system_error("a page for the zygote"));
  auto birth = above_standard(p->birth.fd());
  pid_t pid = 0;
  spawn_options options{socket.get(), birth.get(), complaints.get()};
  if (auto number = options.spawn(pid, path_, arguments_); number != 0)
    return fail(errc::unavailable, "cannot start " + path_ + ": " + errno_text(number));
  p->pid = pid;
  p->socket.assign(std::move(ours));
  p->complaints.assign(std::move(read_end));
  unique_fd exit{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  if (!exit) {
    auto why = system_error("pidfd of the zygote");
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, __WALL);
    return fail(why);
  }
  p->exit.assign(std::move(exit));
  p->number = ++started_;
  process_ = std::move(p);
  watch_socket();
  watch_stderr();
  watch_exit();
  return {};
}

void zygote_client::watch_socket() {
  process_->socket.when_readable([self = shared_from_this(), p = process_.get()] {
    if (self->process_.get() == p)
      self->on_message();
  });
}

void zygote_client::watch_stderr() {
  process_->complaints.when_readable([self = shared_from_this(), p = process_.get()] {
    if (self->process_.get() == p && p->hear())
      self->watch_stderr();
  });
}

void zygote_client::watch_exit() {
  process_->exit.when_readable([self = shared_from_this(), p = process_.get()] {
    if (self->process_.get() == p)
      self->on_exit();
  });
}

void zygote_client::on_message() {
  auto p = process_;
  if (take_message() && process_ == p)
    watch_socket();
}

/// Takes one message; false when there is none.
bool zygote_client::take_message() {
  char buffer[4096];
  iovec data{buffer, sizeof buffer};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  auto size = ::recvmsg(process_->socket.fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size <= 0)
    return false;  // when it has died, watch_exit tells
  process_->heard = steady_clock::now();
  unique_fd pidfd;
  if (auto* header = CMSG_FIRSTHDR(&message);
      header != nullptr && header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    pidfd.reset(fd);
  }
  spawn_reply reply;
  if (!process_->ready) {
    on_hello({buffer, static_cast<std::size_t>(size)});
  } else if (size == sizeof reply) {
    std::memcpy(&reply, buffer, sizeof reply);
    on_reply(reply, std::move(pidfd));
  }
  return true;
}

void zygote_client::on_hello(std::string_view text) {
  if (!text.starts_with("ok\n")) {
    process_->said = line_value(text, "reason");
    fail_all({errc::unavailable, "the jail cannot be set up here: " + process_->said});
    return;
  }
  process_->ready = true;
  hello_fn_({true, line_value(text, "mode") == "root", std::string{line_value(text, "python")}});
  send_open_requests();
}

void zygote_client::on_reply(const spawn_reply& reply, unique_fd pidfd) {
  auto it =
    std::ranges::find_if(requests_, [&](const request& r) { return r.message.id == reply.id; });
  if (it == requests_.end())
    return;
  auto done = std::move(it->done);
  requests_.erase(it);
  if (reply.error != 0) {
    if (reply.pid > 0) {  // it was never started: its end takes no time
      ::kill(reply.pid, SIGKILL);
      ::waitpid(reply.pid, nullptr, __WALL);
    }
    std::string stage{reply.stage, ::strnlen(reply.stage, sizeof reply.stage)};
    done(fail(errc::unavailable, "no sandbox: " + stage + ": " + errno_text(reply.error)));
  } else {
    done(spawned{reply.pid, std::move(pidfd), process_->number});
  }
  if (process_ && process_->ready)
    send_open_requests();
}

void zygote_client::send_open_requests() {
  if (!process_ || !process_->ready)
    return;
  auto unsent = [](const request& r) { return !r.sent; };
  for (;;) {
    auto next = std::ranges::find_if(requests_, unsent);
    if (next == requests_.end())
      return;
    auto sent = send_one(*next);
    if (!sent) {
      fail_one(next->message.id, sent.error());  // whoever hears of it may have asked for another
      if (!process_ || !process_->ready)
        return;
      continue;
    }
    next->sent = *sent;
    if (!next->sent)
      return;  // its queue is full: the next reply makes room
  }
}

void zygote_client::fail_one(std::uint32_t id, error why) {
  auto it = std::ranges::find_if(requests_, [id](const request& r) { return r.message.id == id; });
  auto done = std::move(it->done);
  requests_.erase(it);
  done(fail(std::move(why)));
}

/// False when it has no room for the request now.
result<bool> zygote_client::send_one(request& r) {
  auto far_ends = r.make();
  if (!far_ends)
    return fail(far_ends.error());
  std::vector<int> fds;
  for (const auto& end : far_ends->ends)
    fds.push_back(end.get());
  for (const auto& tasks : far_ends->groups.tasks)
    fds.push_back(tasks.get());
  if (far_ends->groups.into)
    fds.push_back(far_ends->groups.into.get());
  auto copy = r.message;
  copy.task_fds = static_cast<std::uint32_t>(far_ends->groups.tasks.size());
  copy.into_group = far_ends->groups.into ? 1 : 0;
  iovec data{&copy, sizeof copy};
  alignas(cmsghdr) char space[CMSG_SPACE(max_request_fds * sizeof(int))] = {};
  auto size = fds.size() * sizeof(int);
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = CMSG_SPACE(size);
  auto* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(size);
  std::memcpy(CMSG_DATA(header), fds.data(), size);
  if (::sendmsg(process_->socket.fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
    return true;
  if (errno == EAGAIN || errno == EPIPE || errno == ECONNRESET)  // dead: on_exit goes on
    return false;
  return fail(system_error("send to the zygote"));
}

/// The sandbox that a killed zygote had begun and did not live to tell of.
void zygote_client::end_orphan(const process& p) {
  auto born = p.birth.read();
  auto untold =
    std::ranges::any_of(requests_, [&](auto& r) { return r.sent && r.message.id == born.request; });
  if (!untold || born.pid <= 0)
    return;
  ::kill(born.pid, SIGKILL);
  ::waitpid(born.pid, nullptr, __WALL);
}

void zygote_client::on_exit() {
  while (take_message()) {  // what it has said counts
  }
  auto p = std::move(process_);
  end_orphan(*p);
  int status = 0;
  ::waitpid(p->pid, &status, __WALL);
  if (closing_) {
    fail_all({errc::unavailable, "the jail is closing"});
    p.reset();  // whoever waits may look for descriptors left open
    if (auto closed = std::exchange(closed_, nullptr))
      closed();
    return;
  }
  while (p->hear()) {
  }
  auto why = "the zygote " + how_it_ended(status);
  auto words = to_utf8(p->said);
  if (auto line = trim(words); !line.empty())
    why += ": " + std::string{line};
  if (!p->ready && WIFEXITED(status)) {  // what it said of its failure has been passed on
    fail_all({errc::unavailable, why});
    return;
  }
  log::warn("jail: " + why);
  auto under_way = p->birth.read().request;  // 0: it died before the first
  auto open = std::exchange(requests_, {});
  for (auto& r : open) {
    if (under_way == 0 || under_way == r.message.id)
      ++r.deaths;
    if (r.deaths >= max_deaths) {
      r.done(fail(errc::unavailable, why));
    } else {
      r.sent = false;
      requests_.push_back(std::move(r));
    }
  }
  if (!requests_.empty() && !process_)
    if (auto started = start(); !started)
      fail_all(started.error());
}

void zygote_client::fail_all(const error& why) {
  auto open = std::exchange(requests_, {});
  for (auto& r : open)
    r.done(fail(why));
}

void zygote_client::watch_silence() {
  if (std::exchange(watching_, true))
    return;
  io_.in(silence_limit / 4, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self)
      return;
    self->watching_ = false;
    if (!self->process_ || self->requests_.empty())
      return;
    auto silent = steady_clock::now() - std::max(self->process_->heard, self->asked_);
    if (silent >= (self->process_->ready ? silence_limit : start_limit))
      self->kill_process();
    self->watch_silence();
  });
}

void zygote_client::kill_process() {
  ::kill(process_->pid, SIGKILL);  // our unreaped child: the number cannot be another's
}

void zygote_client::close(std::function<void()> done) {
  closing_ = true;
  if (!process_) {
    done();
    return;
  }
  closed_ = std::move(done);
  kill_process();
}

}  // namespace troupe::jail
