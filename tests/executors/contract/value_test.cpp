#include "tests/executors/contract/contract.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct sample {
  const char* expression;
  const char* tagged;
};

// Types and tags of smolagents' serialization.py, and our own: float, int, dict as pairs.
constexpr sample samples[] = {
  {"None", "null"},
  {"[True, False]", "[true,false]"},
  {"[0, -1, 2**63 - 1, -2**63]", "[0,-1,9223372036854775807,-9223372036854775808]"},
  {"2**64", R"({"__type__":"int","data":"18446744073709551616"})"},
  {"[1.5, 1e300, -0.0]", "[1.5,1e+300,-0.0]"},
  {"float('nan')", R"({"__type__":"float","data":"nan"})"},
  {"[float('inf'), -float('inf')]",
   R"([{"__type__":"float","data":"inf"},{"__type__":"float","data":"-inf"}])"},
  {"'text'", R"("text")"},
  {"{'a': [1, {'b': None}]}", R"({"a":[1,{"b":null}]})"},
  {"(1, 'x')", R"({"__type__":"tuple","data":[1,"x"]})"},
  {"{3, 1, 2}", R"({"__type__":"set","data":[1,2,3]})"},
  {"frozenset('b')", R"({"__type__":"frozenset","data":["b"]})"},
  {"b'\\x00\\xff'", R"({"__type__":"bytes","data":"AP8="})"},
  {"1+2j", R"({"__type__":"complex","imag":2.0,"real":1.0})"},
  {"{1: 'a', (2, 3): 'b'}",
   R"({"__type__":"dict","data":[[1,"a"],[{"__type__":"tuple","data":[2,3]},"b"]]})"},
  {"{'__type__': 'tuple', 'data': [1]}",
   R"({"__type__":"dict","data":[["__type__","tuple"],["data",[1]]]})"},
  {"datetime.datetime(2026, 1, 2, 3, 4, 5, 6)",
   R"({"__type__":"datetime","data":"2026-01-02T03:04:05.000006"})"},
  {"datetime.date(2026, 1, 2)", R"({"__type__":"date","data":"2026-01-02"})"},
  {"datetime.time(3, 4)", R"({"__type__":"time","data":"03:04:00"})"},
  {"datetime.timedelta(days=1, microseconds=5)",
   R"({"__type__":"timedelta","total_seconds":86400.000005})"},
  {"decimal.Decimal('1.10')", R"({"__type__":"Decimal","data":"1.10"})"},
  {"pathlib.Path('/a/b')", R"({"__type__":"Path","data":"/a/b"})"},
};

constexpr const char* imports = "import datetime, decimal, pathlib, dataclasses\n";

}  // namespace

CONTRACT_CASE("every type crosses with its tag", "[values]") {
  auto s = fx.open();
  fx.run(*s, imports);
  for (const auto& x : samples) {
    INFO(x.expression);
    CHECK(tagged(fx.run(*s, x.expression)) == x.tagged);
  }
}

CONTRACT_CASE("every type survives the way out and back in", "[values]") {
  auto s = fx.open();
  fx.run(*s, std::string{imports} + "import troupe_values as v, json");
  for (const auto& x : samples) {
    INFO(x.expression);
    auto code = std::string{"x = "} + x.expression
                + "\ny = v.decode(json.loads(json.dumps(v.encode(x))))\n"
                  "[type(x) is type(y) or isinstance(x, pathlib.PurePath), x == y or x != x]";
    CHECK(tagged(fx.run(*s, code)) == "[true,true]");
  }
}

CONTRACT_CASE("a dataclass crosses as its fields and comes back as a dict", "[values]") {
  auto s = fx.open();
  auto o = fx.run(*s, std::string{imports}
                        + "@dataclasses.dataclass\nclass P:\n  x: int\n  y: tuple\nP(1, (2,))");
  CHECK(tagged(o)
        == R"({"__type__":"dataclass","class_name":"P","data":{"x":1,)"
           R"("y":{"__type__":"tuple","data":[2]}},"module":"__main__"})");
  CHECK(o.result->text == "P(x=1, y=(2,))");
}

CONTRACT_CASE("a value that cannot cross still has its text", "[values]") {
  auto s = fx.open();
  auto o = fx.run(*s, "class A:\n  def __str__(self): return 'an A'\nA()");
  CHECK(describe(o) == "ok");
  CHECK(o.result->text == "an A");
  CHECK(o.result->tagged == "an A");
  CHECK(fx.run(*s, "x = []\nx.append(x)\nx").result->text == "[[...]]");
  CHECK(fx.run(*s, "class B:\n  def __str__(self): raise OSError\nB()").result->text
        == "<B whose str() raised OSError>");
}

CONTRACT_CASE("text of any script survives both ways, and broken text is replaced", "[values]") {
  auto s = fx.open();
  auto o = fx.run(*s, "name = 'Zoë 東京 \U0001F40D'\nprint(name)\nname");
  CHECK(o.logs == "Zoë 東京 \U0001F40D\n");
  CHECK(o.result->tagged == "Zoë 東京 \U0001F40D");
  CHECK(fx.run(*s, "'a\\ud800b'").result->text == "a\uFFFDb");
  CHECK(fx.run(*s, "'\\x00'").result->tagged == std::string(1, '\0'));
  CHECK(fx.run(*s, "{'k\\udfff': 1}").result->tagged == json{{"k\uFFFD", 1}});
}

CONTRACT_CASE("code that is no text is still an answer", "[values]") {
  auto s = fx.open();
  CHECK(fx.run(*s, "'a\xff'").result->text == "a\uFFFD");
  auto nul = fx.run(*s, std::string("x = 1\0", 6));
  CHECK(nul.end == snippet_end::raised);
  CHECK(tagged(fx.run(*s, "1")) == "1");
}

CONTRACT_CASE("a huge value is told in bounded text", "[values]") {
  auto s = fx.open();
  CHECK(fx.run(*s, "10 ** 5000").result->text == "<int of 16610 bits>");
  auto big = fx.run(*s, "'x' * 3_000_000");
  CHECK(describe(big) == "ok");
  CHECK(big.result->text.size() <= 65u << 10);
  CHECK(big.result->text.find("bytes cut") != std::string::npos);
  CHECK(fx.run(*s, "list(range(2_000_000))").result->text.size() <= 65u << 10);
  auto deep = fx.run(*s, "x = 1\nfor _ in range(500): x = [x]\nx");
  CHECK(describe(deep) == "ok");
  CHECK(deep.result->tagged.is_string());
}

CONTRACT_CASE("a value as large as a frame may be crosses whole", "[values]") {
  auto s = fx.open();
  CHECK(fx.run(*s, "'x' * 900_000").result->tagged == std::string(900'000, 'x'));
  CHECK(fx.run(*s, "list(range(100_000))").result->tagged.size() == 100'000);
}
