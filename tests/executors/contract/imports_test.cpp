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

// The list is a courtesy, and these are the known ways around lists of its kind; the kernel's walls
// stand behind it.
CONTRACT_CASE("ways around the import list reach nothing of the host's", "[imports]") {
  fx.needs(fx.can().isolated && fx.can().network_none);
  sandbox_spec spec;
  spec.imports = {"random", "queue"};
  auto s = fx.open(spec);
  CHECK(fx.run(*s, "import random, queue\nimport os").end == snippet_end::raised);
  for (
    auto* way : {
      "random._os",
      "queue.threading._sys.modules['os']",
      "list(map(getattr, [random], ['_os']))[0]",
      R"([c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0].__init__ \
           .__globals__['sys'].modules['os'])",
      "getattr(random, [n for n in random.__dir__() if n == '_os'][0])",
      "eval('__import__', random.__dict__['__builtins__'])('os')",
    }) {
    INFO(way);
    auto found = fx.run(*s, std::string{"o = "} + way + "\no.__name__");
    REQUIRE(tagged(found) == "\"os\"");
    CHECK(tagged(fx.run(*s, "[o.path.exists(p) for p in ('/home', '/root', '/var')]"))
          == "[false,false,false]");
    CHECK(describe(fx.run(*s, "o.open('/usr/x', o.O_CREAT | o.O_WRONLY)"))
            .starts_with("raised OSError: [Errno 30]"));
    CHECK(fx.run(*s, "eval('__import__', vars(random)['__builtins__'])('socket')"
                     ".create_connection(('127.0.0.1', 9), timeout=5)")
            .error->type
          == "PermissionError");
  }
}

CONTRACT_CASE("without rules everything that is installed may be imported", "[imports]") {
  CHECK(describe(import_with(fx, {}, "import socket, ctypes, xml.etree.ElementTree")) == "ok");
}

CONTRACT_CASE("a refused import names the module and what is allowed", "[imports]") {
  auto o = import_with(fx, {"math", "os.path"}, "x = 1\nimport socket");
  CHECK(describe(o)
        == "raised ImportError: Import of 'socket' is not allowed. Allowed imports: math, os.path");
  CHECK(o.error->line == 2);
  CHECK(refused_import(*o.error) == "socket");  // so the user is told too
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
