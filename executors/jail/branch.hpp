#pragma once
// The worker's side of fork(), as Python calls it: members of the module `_troupe`.

#include <Python.h>  // first, as CPython asks

namespace troupe::jail {

/// take_pipe() -> int: the next pipe that the runtime has sent for a branch. Waits up to 5 s.
/// Raises OSError: none has come; EMFILE one has, and is lost.
PyObject* take_pipe(PyObject*, PyObject*);

/// send_image(pipe) -> None once this process's memory has gone into the pipe; in the process that
/// has taken it over (request, frame_bytes), as those were given to take_over. Raises OSError.
PyObject* send_image(PyObject*, PyObject* args);

/// take_over(pipe, answer_fd, request, frame_bytes, no_memory, broken): this process goes on as the
/// one whose image comes from the pipe. When that fails half-way it writes `no_memory` or `broken`
/// to `answer_fd` and ends. Raises OSError before that: ENODATA the image ends early, EXDEV it is
/// of another zygote.
PyObject* take_over_image(PyObject*, PyObject* args);

}  // namespace troupe::jail
