#include "tests/executors/contract/contract.hpp"

using namespace troupe;
using namespace troupe::test;

CONTRACT_CASE("an exception comes with its type, message, line and the snippet's own frames",
              "[errors]") {
  auto s = fx.open();
  auto o = fx.run(*s, "print('before')\ndef f(x):\n  return 1 / x\n\nf(0)\n");
  REQUIRE(o.end == snippet_end::raised);
  CHECK(o.logs == "before\n");
  CHECK(o.error->type == "ZeroDivisionError");
  CHECK(o.error->message == "division by zero");
  CHECK(o.error->line == 3);
  CHECK(o.error->traceback.find("File \"<snippet>\", line 5, in <module>\n    f(0)")
        != std::string::npos);
  CHECK(o.error->traceback.find("line 3, in f\n    return 1 / x") != std::string::npos);
  CHECK(o.error->traceback.find("troupe") == std::string::npos);
}

CONTRACT_CASE("an error in a library is put on the snippet's line, without the library's frames",
              "[errors]") {
  auto s = fx.open();
  auto o = fx.run(*s, "import json\n\njson.loads('{')");
  CHECK(o.error->type == "JSONDecodeError");
  CHECK(o.error->line == 3);
  CHECK(o.error->traceback.find("decoder.py") == std::string::npos);
}

CONTRACT_CASE("an error in a function of an earlier snippet shows that snippet's line",
              "[errors]") {
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "\n\ndef g():\n  raise KeyError('k')")) == "ok");
  auto o = fx.run(*s, "x = 1\ng()");
  CHECK(o.error->line == 2);
  CHECK(o.error->traceback.find("raise KeyError('k')") != std::string::npos);
}

CONTRACT_CASE("a syntax error shows its line and a caret, and nothing has run", "[errors]") {
  auto s = fx.open();
  auto o = fx.run(*s, "print('x')\nif True\n  pass");
  REQUIRE(o.end == snippet_end::raised);
  CHECK(o.error->type == "SyntaxError");
  CHECK(o.error->line == 2);
  CHECK(o.error->traceback.find("if True\n") != std::string::npos);
  CHECK(o.error->traceback.find('^') != std::string::npos);
  CHECK(o.logs.empty());
}

CONTRACT_CASE("the cause of an exception is told with it", "[errors]") {
  auto s = fx.open();
  auto o = fx.run(*s, "try:\n  1 / 0\nexcept ZeroDivisionError as e:\n"
                      "  raise ValueError('outer') from e");
  CHECK(describe(o) == "raised ValueError: outer");
  CHECK(o.error->line == 4);
  CHECK(o.error->traceback.find("ZeroDivisionError: division by zero") != std::string::npos);
  CHECK(o.error->traceback.find("direct cause") != std::string::npos);
}

CONTRACT_CASE("an exception that cannot say what it is, is told in bounded text", "[errors]") {
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "class E(Exception):\n  def __str__(self): raise OSError\nraise E"))
        == "raised E: <str() of the exception raised OSError>");
  auto huge = fx.run(*s, "raise ValueError('x' * 10_000_000)");
  CHECK(huge.error->message.size() < 5u << 10);
  CHECK(huge.error->traceback.size() < 17u << 10);
  auto deep = fx.run(*s, "def f(): f()\nf()");
  CHECK(deep.error->type == "RecursionError");
  CHECK(deep.error->traceback.size() < 17u << 10);
  CHECK(fx.run(*s, "raise ValueError('\\ud800')").error->message == "\uFFFD");
}

CONTRACT_CASE("a failed assertion without a text shows its condition", "[errors]") {
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "n = 3\nassert n > 5")) == "raised AssertionError: assert n > 5");
}

CONTRACT_CASE("a key that a dict has not is told with the nearest that it has", "[errors]") {
  auto s = fx.open();
  fx.run(*s, "d = {'city': 1, '7': 2, 'deep': [{'name': 3}], (1, 2): 4}");
  CHECK(describe(fx.run(*s, "print(d['citty'])"))
        == "raised KeyError: 'citty' (did you mean 'city'?)");
  CHECK(describe(fx.run(*s, "k = 7\nd[k]")) == "raised KeyError: 7 (did you mean '7'?)");
  CHECK(describe(fx.run(*s, "def f(x):\n  return x['city'] + x['deep'][0]['nome']\nf(d)"))
        == "raised KeyError: 'nome' (did you mean 'name'?)");
  CHECK(describe(fx.run(*s, "f(d)")) == "raised KeyError: 'nome' (did you mean 'name'?)");
  for (auto* far : {"d['unlike']", "d[(1, 3)]", "d.pop('citty')", "raise KeyError('citty')",
                    "import os\nos.environ['HOMME']"}) {
    INFO(far);
    auto o = fx.run(*s, far);
    REQUIRE(o.error);
    CHECK(o.error->type == "KeyError");
    CHECK(o.error->message.find("did you mean") == std::string::npos);
  }
}

CONTRACT_CASE("the search for a near key is bounded, and runs none of the code's own methods",
              "[errors]") {
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "big = {i: i for i in range(100_000)}\nbig['end'] = 1\nbig['ends']"))
        == "raised KeyError: 'ends'");
  CHECK(describe(fx.run(*s, "wide = {'x' * 100_000: 1}\nwide['x' * 99_999 + 'y']"))
          .starts_with("raised KeyError: 'xxx"));
  CHECK(describe(fx.run(*s, "class D(dict):\n  def __iter__(self): raise SystemExit\n"
                            "own = D(city=1)\nown['citty']"))
        == "raised KeyError: 'citty'");
}

CONTRACT_CASE("a text with a key in place of a number says what it wants", "[errors]") {
  auto s = fx.open();
  auto o = fx.run(*s, "row = '{\"a\": 1}'\nrow['a']");
  CHECK(describe(o).starts_with("raised TypeError: string indices must be integers"));
  CHECK(o.error->line == 2);
}

CONTRACT_CASE("a reply that may be prose runs when it is Python and only then", "[errors]") {
  auto s = fx.open();
  auto o = fx.run(*s, snippet{.code = "I think the answer is 4.", .may_be_prose = true});
  CHECK(o.end == snippet_end::not_code);
  CHECK(!o.error);
  CHECK(tagged(fx.run(*s, snippet{.code = "2 + 2", .may_be_prose = true})) == "4");
  CHECK(fx.run(*s, snippet{.code = std::string("a\0b", 3), .may_be_prose = true}).end
        == snippet_end::not_code);
  CHECK(fx.run(*s, snippet{.code = "1 / 0", .may_be_prose = true}).end == snippet_end::raised);
}

CONTRACT_CASE("exit is an error and the sandbox lives on", "[errors]") {
  auto s = fx.open();
  fx.run(*s, "kept = 5");
  for (auto* code : {"import sys\nsys.exit(3)", "exit(3)", "raise SystemExit(3)"}) {
    auto o = fx.run(*s, code);
    if (o.error->type == "NameError")
      continue;  // exit() comes with site, which a backend may leave out
    CHECK(describe(o).starts_with("raised SystemExit: the code asked to exit with status 3"));
  }
  CHECK(tagged(fx.run(*s, "kept")) == "5");
}

CONTRACT_CASE("a KeyboardInterrupt that nobody asked for is just an exception", "[errors]") {
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "raise KeyboardInterrupt('mine')"))
        == "raised KeyboardInterrupt: mine");
  CHECK(tagged(fx.run(*s, "1")) == "1");
}
