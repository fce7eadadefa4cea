#include "tests/jail/jail_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("the value of the last expression is the result", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  auto o = fx.run(*s, "x = 20\nx * 2 + 2");
  CHECK(describe(o) == "ok");
  CHECK(tagged(o) == "42");
  CHECK(o.result->text == "42");
  CHECK(!o.is_final);
}
