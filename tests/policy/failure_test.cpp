#include "runtime/policy/failure.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <set>

using namespace troupe;
using enum failure_class;

namespace {

constexpr std::array all = {connect, timeout, rate_limited, overloaded,     server,    bad_reply,
                            quota,   auth,    bad_request,  context_length, cancelled, unknown};

}  // namespace

TEST_CASE("every failure class has its own name, and the name leads back to it", "[failure]") {
  std::set<std::string_view> names;
  for (auto kind : all) {
    names.insert(to_string(kind));
    CHECK(failure_class_from(to_string(kind)) == kind);
  }
  CHECK(names.size() == all.size());
  CHECK(to_string(rate_limited) == "rate_limited");
  CHECK(failure_class_from("ratelimited") == std::nullopt);
}

TEST_CASE("only what another try may cure is transient", "[failure]") {
  std::set<failure_class> transient;
  for (auto kind : all)
    if (is_transient(kind))
      transient.insert(kind);
  CHECK(transient == std::set{connect, timeout, rate_limited, overloaded, server, bad_reply});
}

TEST_CASE("a value outside the enumeration is unknown and final", "[failure]") {
  auto odd = static_cast<failure_class>(200);
  CHECK(to_string(odd) == "unknown");
  CHECK(!is_transient(odd));
}
