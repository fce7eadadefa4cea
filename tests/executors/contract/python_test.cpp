// What is Python's is Python's: the places where interpreters of its syntax tree go wrong. Expected
// values are those of the language reference, as CPython gives them.
#include "tests/executors/contract/contract.hpp"

using namespace troupe;
using namespace troupe::test;

CONTRACT_CASE("assignments bind from left to right, and unpack or say why not", "[python]") {
  auto s = fx.open();
  CHECK(tagged(fx.run(*s, "a = b = 1\na, b = b + 1, a + 2\n[a, b]")) == "[2,3]");
  CHECK(tagged(fx.run(*s, "a, b = c, d = {1: 10, 2: 20}\n[a, b, c, d]")) == "[1,2,1,2]");
  CHECK(tagged(fx.run(*s, "x = [0, 1]\ni = 0\ni, x[i] = 1, 2\n[i, x]")) == "[1,[0,2]]");
  CHECK(tagged(fx.run(*s, "first, *rest, last = range(5)\n[first, rest, last]"))
        == "[0,[1,2,3],4]");
  auto o = fx.run(*s, "a = 'kept'\na, b = 1, 2, 3");
  CHECK(describe(o) == "raised ValueError: too many values to unpack (expected 2)");
  CHECK(o.error->line == 2);
  CHECK(tagged(fx.run(*s, "a")) == "\"kept\"");
}

CONTRACT_CASE("a context manager is left by the manager, whatever entering gave", "[python]") {
  auto s = fx.open();
  fx.run(*s, R"py(
log = []
class Manager:
  def __init__(self, name, suppresses=False, breaks=False):
    self.name, self.suppresses, self.breaks = name, suppresses, breaks
  def __enter__(self):
    return "no manager"
  def __exit__(self, kind, error, tb):
    log.append([self.name, kind and kind.__name__])
    if self.breaks: raise OSError("at the exit")
    return self.suppresses
)py");
  CHECK(tagged(fx.run(*s, "with Manager('a') as got: pass\nwith Manager('b'): pass\n[got, log]"))
        == R"(["no manager",[["a",null],["b",null]]])");
  CHECK(tagged(fx.run(*s, "log.clear()\nwith Manager('outer'), Manager('inner', suppresses=True):\n"
                          "  1 / 0\nlog"))
        == R"([["inner","ZeroDivisionError"],["outer",null]])");
  auto o = fx.run(*s, "with Manager('a', breaks=True):\n  1 / 0");
  CHECK(describe(o) == "raised OSError: at the exit");
  CHECK(o.error->traceback.find("ZeroDivisionError") != std::string::npos);
}

CONTRACT_CASE("a generator without end is run as far as it is asked", "[python]") {
  auto s = fx.open();
  auto o = fx.run(*s, R"py(
import itertools
made = []
def numbers():
  n = 0
  while True:
    made.append(n)
    yield n
    n += 1
lazy = (n * n for n in numbers())
[next(lazy), next(lazy), list(itertools.islice(lazy, 2)), made]
)py");
  CHECK(tagged(o) == "[0,1,[4,9],[0,1,2,3]]");
  CHECK(tagged(fx.run(*s, "next(lazy)")) == "16");
}

CONTRACT_CASE("a comprehension's variables are its own", "[python]") {
  auto s = fx.open();
  CHECK(tagged(fx.run(*s, "n = 'mine'\n[[n for n in range(2)], {n: n for n in 'a'}, n]"))
        == R"([[0,1],{"a":"a"},"mine"])");
  CHECK(describe(fx.run(*s, "[k for k in range(3)]\nk"))
        == "raised NameError: name 'k' is not defined");
}

CONTRACT_CASE("comparisons give what their operands make of them, and stop early", "[python]") {
  auto s = fx.open();
  fx.run(*s, R"py(
class Column:
  def __init__(self, *values): self.values = values
  def __gt__(self, other): return Column(*(v > other for v in self.values))
  def __and__(self, other): return Column(*(a and b for a, b in zip(self.values, other.values)))
  def __str__(self): return "Column" + str(list(self.values))
calls = []
def told(x):
  calls.append(x)
  return x
)py");
  CHECK(fx.run(*s, "Column(1, 5) > 3").result->text == "Column[False, True]");
  CHECK(fx.run(*s, "(Column(1, 5) > 3) & (Column(9, 9) > 1)").result->text
        == "Column[False, True]");
  CHECK(tagged(fx.run(*s, "[told(1) < told(3) < told(2) < told(9), calls]")) == "[false,[1,3,2]]");
  CHECK(tagged(fx.run(*s, "[0 or 'b', '' or [], 'a' and 7, None and 1 / 0, 1 or 1 / 0]"))
        == R"(["b",[],7,null,1])");
}

CONTRACT_CASE("return, break and continue leave a try by its finally", "[python]") {
  auto s = fx.open();
  auto o = fx.run(*s, R"py(
log = []
def f(how):
  for i in range(3):
    try:
      if how == "return": return "returned"
      if how == "break": break
      if how == "continue": continue
      raise ValueError(how)
    except ValueError as e:
      return f"caught {e}"
    finally:
      log.append(how)
  return i
[f("return"), f("break"), f("continue"), f("raise"), log]
)py");
  CHECK(tagged(o)
        == R"(["returned",0,2,"caught raise",)"
           R"(["return","break","continue","continue","continue","raise"]])");
  CHECK(describe(fx.run(*s, "try: 1 / 0\nexcept ZeroDivisionError as e: pass\ne"))
        == "raised NameError: name 'e' is not defined");
}

CONTRACT_CASE("a name that is not defined is an error, and one that is not yet so is another",
              "[python]") {
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "print(nothing)"))
        == "raised NameError: name 'nothing' is not defined");
  auto o = fx.run(*s, "x = 1\ndef f():\n  y = x\n  x = 2\nf()");
  CHECK(o.error->type == "UnboundLocalError");
  CHECK(o.error->line == 3);
  CHECK(describe(fx.run(*s, "return 5")).starts_with("raised SyntaxError: 'return' outside"));
}
