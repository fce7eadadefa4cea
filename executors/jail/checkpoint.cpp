#define PY_SSIZE_T_CLEAN
#include "executors/jail/checkpoint.hpp"

#include "executors/jail/branch.hpp"
#include "executors/jail/memory_image.hpp"
#include "executors/jail/own_state.hpp"
#include "executors/jail/wire.hpp"

#include <charconv>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

namespace troupe::jail {
namespace {

// --- the worker's side
// -----------------------------------------------------------------------------

/// What comes over the socket while the worker lives is meant for the worker.
void outlive_worker() {
  constexpr pid_t init = 1;  // takes the dead's children
  constexpr int pause_ms = 1;
  pollfd wait{saved_fd, POLLIN, 0};
  while (::getppid() != init)
    if (::poll(&wait, 1, -1) > 0 && ::getppid() != init)
      ::poll(nullptr, 0, pause_ms);
}

/// Waits for init to say that the worker is dead, with the channel to go on with. Ends the process
/// when init has gone. Runs without the interpreter: nothing of it may be touched, so that no page
/// is copied in vain.
int wait_as_checkpoint() {
  outlive_worker();
  auto fd = receive_order(resume_order);
  if (fd < 0)
    ::_exit(0);
  return fd;
}

/// Killed, and not waited for yet: its end takes as long as a small snippet, beside which it may go
/// on. 0: none.
pid_t ending = 0;

void await_ending() {
  while (ending > 0 && ::waitpid(ending, nullptr, 0) < 0 && errno == EINTR) {
  }
  ending = 0;
}

/// settle(): waits for what drop() has not waited for. Before all that is not save().
PyObject* settle(PyObject*, PyObject*) {
  await_ending();
  Py_RETURN_NONE;
}

/// save(data_fd) -> int: in the worker the checkpoint's pid; 0 in a checkpoint that has become the
/// worker, with `data_fd` on its new channel. Raises OSError: no checkpoint was made.
PyObject* save(PyObject*, PyObject* args) {
  int data_fd = -1;
  if (PyArg_ParseTuple(args, "i", &data_fd) == 0)
    return nullptr;
  PyOS_BeforeFork();
  auto pid = ::fork();
  if (pid < 0 && ending > 0) {  // the one before still counts
    await_ending();
    pid = ::fork();
  }
  if (pid == 0) {
    auto fresh = wait_as_checkpoint();
    ending = 0;  // not this process's child
    ::dup3(fresh, data_fd, O_CLOEXEC);
    ::close(fresh);
    PyOS_AfterFork_Child();
    return PyLong_FromLong(0);
  }
  auto number = errno;
  await_ending();  // no dead child is the code's to find, and no memory but its own is charged
  PyOS_AfterFork_Parent();
  if (pid > 0) {
    saved_note note{pid};
    if (::send(saved_fd, &note, sizeof note, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof note)
      return PyLong_FromLong(pid);
    number = errno;  // the code has closed the socket: nobody could wake the checkpoint
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  errno = number;
  return PyErr_SetFromErrno(PyExc_OSError);
}

/// True once the next request has come; false when none has within the time.
bool is_wanted(int data_fd, int ms) {
  pollfd wait{data_fd, POLLIN, 0};
  return ::poll(&wait, 1, ms) > 0;
}

/// drop(pid, data_fd): the checkpoint is not needed any more. Waits for its end unless the host
/// wants something meanwhile.
PyObject* drop(PyObject*, PyObject* args) {
  constexpr int pause_ms = 1, pauses = 50;
  int pid = -1, data_fd = -1;
  if (PyArg_ParseTuple(args, "ii", &pid, &data_fd) == 0)
    return nullptr;
  if (pid <= 0)
    Py_RETURN_NONE;
  await_ending();
  ending = pid;
  ::kill(pid, SIGKILL);
  for (int i = 0; i < pauses && !is_wanted(data_fd, pause_ms); ++i)
    if (::waitpid(ending, nullptr, WNOHANG) != 0) {
      ending = 0;
      Py_RETURN_NONE;
    }
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"save", save, METH_VARARGS, nullptr},
                         {"drop", drop, METH_VARARGS, nullptr},
                         {"settle", settle, METH_NOARGS, nullptr},
                         {"take_pipe", take_pipe, METH_NOARGS, nullptr},
                         {"send_image", send_image, METH_VARARGS, nullptr},
                         {"take_over", take_over_image, METH_VARARGS, nullptr},
                         {"remember", remember, METH_VARARGS, nullptr},
                         {"given", given, METH_NOARGS, nullptr},
                         {"usage", usage, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyModuleDef module_def = {
  PyModuleDef_HEAD_INIT, "_troupe", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

// --- init's side
// -----------------------------------------------------------------------------------

struct directory {
  explicit directory(int fd) : entries{::fdopendir(::openat(fd, ".", O_RDONLY | O_CLOEXEC))} {}
  ~directory() {
    if (entries != nullptr)
      ::closedir(entries);
  }
  directory(const directory&) = delete;
  directory& operator=(const directory&) = delete;

  DIR* entries;
};

/// Kills all but init and `kept`; the number of others found, the dead that nobody reaped included.
int kill_all_but(int process_list, pid_t kept) {
  directory list{process_list};
  if (list.entries == nullptr)
    return -1;
  int others = 0;
  while (auto* entry = ::readdir(list.entries)) {
    std::string_view name = entry->d_name;
    pid_t pid = 0;
    auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ptr != name.data() + name.size() || pid == 1 || pid == kept)
      continue;
    ::kill(pid, SIGKILL);
    ++others;
  }
  return others;
}

/// The code may have made the socket one that does not wait, or not for long.
void wait_for_order() {
  pollfd wait{saved_fd, POLLIN, 0};
  ::poll(&wait, 1, -1);
}

bool hung_up(int fd) {
  pollfd state{fd, 0, 0};
  return ::poll(&state, 1, 0) > 0 && (state.revents & POLLHUP) != 0;
}

/// Takes all that the dead have left in the socket, empty messages too. False when nobody holds its
/// other end any more, or somebody goes on writing.
bool drain(int saved) {
  constexpr int more_than_fit = 4'096;
  char byte = 0;
  for (int i = 0; i < more_than_fit; ++i) {
    auto size = ::recv(saved, &byte, 1, MSG_DONTWAIT);
    if (size < 0)
      return errno == EAGAIN;
    if (size == 0 && hung_up(saved))
      return false;
  }
  return false;
}

}  // namespace

int receive_order(char wanted) {
  for (;;) {
    char order = 0;
    iovec data{&order, 1};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    auto size = ::recvmsg(saved_fd, &message, MSG_CMSG_CLOEXEC);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) {
      wait_for_order();
      continue;
    }
    auto* header = CMSG_FIRSTHDR(&message);
    if (size == 1 && order == call_order) {
      saved_note here{::getpid()};
      ::send(saved_fd, &here, sizeof here, MSG_DONTWAIT | MSG_NOSIGNAL);
      continue;
    }
    if (size != 1 || header == nullptr || header->cmsg_len != CMSG_LEN(sizeof(int))) {
      if (size >= 0)
        errno = (message.msg_flags & MSG_CTRUNC) != 0 ? EMFILE : ECONNRESET;
      return -1;
    }
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    if (order == wanted)
      return fd;
    ::close(fd);  // nobody has waited for it long enough
  }
}

bool add_checkpoint_module() {
  prepare_images();  // where that fails, each fork() says so
  auto* module = PyModule_Create(&module_def);
  auto added =
    module != nullptr && PyDict_SetItemString(PyImport_GetModuleDict(), "_troupe", module) == 0;
  Py_XDECREF(module);
  return added;
}

unique_fd open_process_list() {
  unique_fd context{static_cast<int>(::syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC))};
  if (!context
      || ::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, "subset", "pid", 0) != 0
      || ::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return {};
  return unique_fd{static_cast<int>(
    ::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC,
              MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC))};
}

bool end_all_but(int process_list, pid_t kept) {
  constexpr int rounds = 4'000;
  for (int i = 0; i < rounds; ++i) {
    ::kill(-1, SIGSTOP);  // all at one moment: a stopped process forks no other
    auto others = kill_all_but(process_list, kept);
    for (pid_t pid; (pid = ::waitpid(-1, nullptr, WNOHANG)) > 0;)
      if (pid == kept)
        return false;
    if (others == 0)
      return ::kill(kept, SIGCONT) == 0;
    timespec pause{0, 500'000};
    ::nanosleep(&pause, nullptr);
  }
  return false;
}

bool answers_call(int saved, pid_t checkpoint) {
  constexpr int patience_ms = 2'000;
  if (!drain(saved) || ::send(saved, &call_order, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
    return false;
  saved_note note;
  pollfd wait{saved, POLLIN, 0};  // readable too when the last other end is closed
  return ::poll(&wait, 1, patience_ms) > 0
         && ::recv(saved, &note, sizeof note, MSG_DONTWAIT) == sizeof note
         && note.pid == checkpoint;
}

}  // namespace troupe::jail
