#pragma once
// A jail executor on its own reactor, with blocking calls for tests.

#include "executors/jail/jail_executor.hpp"
#include "tests/support/executor_fixture.hpp"

namespace troupe::test {

class jail_fixture : public executor_fixture {
public:
  explicit jail_fixture(jail_options options = {})
    : executor_fixture{
      [&](reactor& r) { return std::make_unique<jail_executor>(r, std::move(options)); }} {}

  std::unique_ptr<executor>& jail = backend;
};

}  // namespace troupe::test
