#pragma once
// What the worker states of itself, as members of the module `_troupe`: by way of Python's objects
// each would cost a small snippet, or a sandbox's start, a noticeable part of its time.

#include <Python.h>  // first, as CPython asks

namespace troupe::jail {

/// In a fork of the zygote, before the code can change them: which pipes and sockets it was given
/// as its standard descriptors (wire.hpp).
void remember_descriptors(int first, int last) noexcept;

/// remember(first, last): remember_descriptors for those from `first` to before `last`.
PyObject* remember(PyObject*, PyObject* args);

/// given() -> {descriptor: (device, inode, kind as in stat.S_IFMT)} of what was remembered.
PyObject* given(PyObject*, PyObject*);

/// usage() -> (microseconds, KiB): CPU time of this process and of its children that have ended,
/// and the most memory that one of them has had.
PyObject* usage(PyObject*, PyObject*);

}  // namespace troupe::jail
