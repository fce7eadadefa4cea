#define PY_SSIZE_T_CLEAN
#include "executors/jail/branch.hpp"

#include "executors/jail/checkpoint.hpp"
#include "executors/jail/memory_image.hpp"
#include "executors/jail/wire.hpp"

#include <poll.h>

namespace troupe::jail {
namespace {

constexpr int pipe_patience_ms = 5'000;

PyObject* raise_errno(int number) {
  errno = number;
  return PyErr_SetFromErrno(PyExc_OSError);
}

int wait_for_pipe() {
  pollfd wait{saved_fd, POLLIN, 0};
  auto ready = ::poll(&wait, 1, pipe_patience_ms);
  if (ready <= 0) {
    errno = ready == 0 ? ETIMEDOUT : errno;
    return -1;
  }
  return receive_order(branch_order);
}

/// True when nobody reads from it any more: it comes from a request that has not waited for it.
bool is_abandoned(int pipe) {
  pollfd state{pipe, 0, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & POLLERR) != 0;
}

}  // namespace

PyObject* take_pipe(PyObject*, PyObject*) {
  auto fd = wait_for_pipe();
  for (; fd >= 0 && is_abandoned(fd); fd = wait_for_pipe())
    ::close(fd);
  return fd < 0 ? raise_errno(errno) : PyLong_FromLong(fd);
}

PyObject* send_image(PyObject*, PyObject* args) {
  int pipe = -1;
  if (PyArg_ParseTuple(args, "i", &pipe) == 0)
    return nullptr;
  if (auto failed = carry_state(); failed != 0)
    return raise_errno(failed);
  ::getcontext(&carried.context);  // the other process comes out of this call
  if (carried.moved) {
    settle_in();
    return Py_BuildValue("II", carried.request, carried.frame_bytes);
  }
  if (auto failed = write_image(pipe); failed != 0)
    return raise_errno(failed);
  Py_RETURN_NONE;
}

PyObject* take_over_image(PyObject*, PyObject* args) {
  int pipe = -1, answer_fd = -1;
  unsigned request = 0, frame_bytes = 0;
  const char *no_memory = nullptr, *broken = nullptr;
  Py_ssize_t no_memory_bytes = 0, broken_bytes = 0;
  if (PyArg_ParseTuple(args, "iiIIy#y#", &pipe, &answer_fd, &request, &frame_bytes, &no_memory,
                       &no_memory_bytes, &broken, &broken_bytes)
      == 0)
    return nullptr;
  return raise_errno(take_over(pipe, request, frame_bytes,
                               {answer_fd,
                                {no_memory, static_cast<std::size_t>(no_memory_bytes)},
                                {broken, static_cast<std::size_t>(broken_bytes)}}));
}

}  // namespace troupe::jail
