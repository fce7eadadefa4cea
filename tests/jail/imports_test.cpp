#include "tests/jail/jail_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

snippet_outcome import_with(jail_fixture& fx, std::vector<std::string> rules, std::string code) {
  sandbox_spec spec;
  spec.imports = std::move(rules);
  auto s = fx.open(spec);
  return fx.run(*s, std::move(code));
}

}  // namespace

// The rule table is smolagents' test_check_import_authorized.
TEST_CASE("an import is allowed exactly, by a star, or as a parent of what is allowed",
          "[jail][imports]") {
  jail_fixture fx;
  CHECK(describe(import_with(fx, {"*"}, "import os")) == "ok");
  CHECK(describe(import_with(fx, {"os.*"}, "import os.path")) == "ok");
  CHECK(describe(import_with(fx, {"os.path"}, "import os")) == "ok");
  CHECK(describe(import_with(fx, {"math"}, "from math import sqrt\nassert sqrt(4) == 2")) == "ok");
  CHECK(import_with(fx, {"xml"}, "import xml.etree").end == snippet_end::raised);
  CHECK(import_with(fx, {"xml"}, "from xml import etree").end == snippet_end::raised);
  CHECK(import_with(fx, {"math"}, "import mathx").end == snippet_end::raised);
}

TEST_CASE("a refused import names the module and what is allowed", "[jail][imports]") {
  jail_fixture fx;
  auto o = import_with(fx, {"math", "os.path"}, "x = 1\nimport socket");
  CHECK(describe(o)
        == "raised ImportError: Import of 'socket' is not allowed. Allowed imports: math, os.path");
  CHECK(o.error->line == 2);
}

TEST_CASE("what an allowed module imports itself is not checked", "[jail][imports]") {
  jail_fixture fx;
  CHECK(describe(import_with(fx, {"zipfile"}, "import zipfile\nzipfile.ZipFile")) == "ok");
  CHECK(describe(import_with(fx, {"datetime"},
                             "import datetime\ndatetime.datetime.strptime('2026', '%Y')"))
        == "ok");
}

TEST_CASE("an allowed module that is not installed fails the open", "[jail][imports]") {
  jail_fixture fx;
  sandbox_spec spec;
  spec.imports = {"math", "no_such_module_at_all"};
  auto s = fx.try_open(spec);
  REQUIRE(!s);
  CHECK(s.error().code == errc::invalid_argument);
  CHECK(s.error().detail == "not installed in the sandbox: no_such_module_at_all");
}
