#define PY_SSIZE_T_CLEAN
#include "executors/jail/own_state.hpp"

#include "executors/jail/checkpoint.hpp"

#include <algorithm>
#include <array>

#include <sys/resource.h>
#include <sys/stat.h>

namespace troupe::jail {
namespace {

struct identity {
  dev_t device = 0;
  ino_t inode = 0;
  mode_t kind = 0;  ///< 0: neither a pipe nor a socket
};

std::array<identity, saved_fd + 1> own;

identity identify(int fd) noexcept {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !(S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)))
    return {};
  return {info.st_dev, info.st_ino, info.st_mode & S_IFMT};
}

long long microseconds(const timeval& t) noexcept {
  return t.tv_sec * 1'000'000LL + t.tv_usec;
}

}  // namespace

void remember_descriptors(int first, int last) noexcept {
  for (int fd = first; fd < last; ++fd)
    own[static_cast<std::size_t>(fd)] = identify(fd);
}

PyObject* remember(PyObject*, PyObject* args) {
  int first = 0, last = 0;
  if (PyArg_ParseTuple(args, "ii", &first, &last) == 0)
    return nullptr;
  remember_descriptors(std::max(first, 0), std::min(last, static_cast<int>(own.size())));
  Py_RETURN_NONE;
}

PyObject* given(PyObject*, PyObject*) {
  auto* all = PyDict_New();
  for (std::size_t fd = 0; all != nullptr && fd < own.size(); ++fd) {
    const auto& x = own[fd];
    if (x.kind == 0)
      continue;
    auto* number = PyLong_FromSize_t(fd);
    auto* what = Py_BuildValue("KKI", static_cast<unsigned long long>(x.device),
                               static_cast<unsigned long long>(x.inode), x.kind);
    if (number == nullptr || what == nullptr || PyDict_SetItem(all, number, what) != 0)
      Py_CLEAR(all);
    Py_XDECREF(number);
    Py_XDECREF(what);
  }
  return all;
}

PyObject* usage(PyObject*, PyObject*) {
  rusage self{}, children{};
  ::getrusage(RUSAGE_SELF, &self);
  ::getrusage(RUSAGE_CHILDREN, &children);
  auto cpu = microseconds(self.ru_utime) + microseconds(self.ru_stime)
             + microseconds(children.ru_utime) + microseconds(children.ru_stime);
  return Py_BuildValue("Ll", cpu, std::max(self.ru_maxrss, children.ru_maxrss));
}

}  // namespace troupe::jail
