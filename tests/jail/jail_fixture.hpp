#pragma once
// A jail executor on its own reactor, with blocking calls for tests.

#include "executors/jail/jail_executor.hpp"
#include "tests/support/executor_fixture.hpp"

#include <vector>

namespace troupe::test {

class jail_fixture : public executor_fixture {
public:
  explicit jail_fixture(const jail_options& options = {})
    : executor_fixture{[&](reactor& r) { return std::make_unique<jail_executor>(r, options); }} {}

  std::unique_ptr<executor>& jail = backend;
};

/// Our children that are no sandboxes.
inline std::vector<int> zygotes() {
  std::vector<int> pids;
  for (auto pid : take_footprint().children)
    if (!is_first_process(pid))
      pids.push_back(pid);
  return pids;
}

}  // namespace troupe::test
