#pragma once
// How troupe says that something failed: `troupe::result<T>` is a value or a `troupe::error`.

#include "runtime/core/error.hpp"
