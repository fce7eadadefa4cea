#include "tests/executors/contract/contract.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

snippet_outcome import_with(contract_fixture& fx, std::vector<std::string> rules,
                            std::string code) {
  sandbox_spec spec;
  spec.imports = std::move(rules);
  auto s = fx.open(spec);
  return fx.run(*s, std::move(code));
}

}  // namespace

// The rule table is smolagents' test_check_import_authorized.
CONTRACT_CASE("an import is allowed exactly, by a star, or as a parent of what is allowed",
              "[imports]") {
  CHECK(describe(import_with(fx, {"*"}, "import os")) == "ok");
  CHECK(describe(import_with(fx, {"os.*"}, "import os.path")) == "ok");
  CHECK(describe(import_with(fx, {"os.path"}, "import os")) == "ok");
  CHECK(import_with(fx, {"xml"}, "import xml.etree").end == snippet_end::raised);
  CHECK(import_with(fx, {"xml"}, "from xml import etree").end == snippet_end::raised);
  CHECK(import_with(fx, {"math"}, "import mathx").end == snippet_end::raised);
}

CONTRACT_CASE("without rules everything that is installed may be imported", "[imports]") {
  CHECK(describe(import_with(fx, {}, "import socket, ctypes, xml.etree.ElementTree")) == "ok");
}

CONTRACT_CASE("a refused import names the module and what is allowed", "[imports]") {
  auto o = import_with(fx, {"math", "os.path"}, "x = 1\nimport socket");
  CHECK(describe(o)
        == "raised ImportError: Import of 'socket' is not allowed. Allowed imports: math, os.path");
  CHECK(o.error->line == 2);
}

CONTRACT_CASE("what an allowed module imports itself is not checked", "[imports]") {
  CHECK(describe(import_with(fx, {"zipfile"}, "import zipfile\nzipfile.ZipFile")) == "ok");
}

CONTRACT_CASE("an allowed module that is not installed fails the open", "[imports]") {
  sandbox_spec spec;
  spec.imports = {"math", "no_such_module_at_all"};
  auto s = fx.try_open(spec);
  REQUIRE(!s);
  CHECK(s.error().code == errc::invalid_argument);
  CHECK(s.error().detail == "not installed in the sandbox: no_such_module_at_all");
}

CONTRACT_CASE("files of the work directory can be imported, and hide no library", "[imports]") {
  sandbox_spec spec;
  spec.files = {{"helper.py", "x = 9"}, {"json.py", "x"}};
  auto s = fx.open(spec);
  CHECK(tagged(fx.run(*s, "import helper, json\n[helper.x, json.loads('1')]")) == "[9,1]");
}

CONTRACT_CASE("the import list does not bind the host's own commands", "[imports]") {
  sandbox_spec spec;
  spec.imports = {"math"};
  auto s = fx.open(spec);
  CHECK(describe(fx.sh(*s, "exit 6")) == "exited 6");
  REQUIRE(fx.put(*s, "f", "x"));
  CHECK(fx.get(*s, "f") == "x");
}
