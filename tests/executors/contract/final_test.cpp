#include "tests/executors/contract/contract.hpp"

using namespace troupe;
using namespace troupe::test;

CONTRACT_CASE("final_answer ends the snippet at once, from anywhere", "[final]") {
  auto s = fx.open(spec_with({final_answer_spec()}));
  for (auto* code : {
         "final_answer(5)\nprint('after')",
         "final_answer(answer=5)\nprint('after')",
         "def f():\n  def g(): final_answer(5)\n  g()\n  print('after')\nf()\nprint('after')",
         "try:\n  final_answer(5)\nexcept Exception:\n  pass\nprint('after')",
         "[final_answer(5) for _ in range(3)]\nprint('after')",
         "s = 'final_answer(7)'\nfinal_answer(5)\nprint('after')",
       }) {
    INFO(code);
    auto o = fx.run(*s, code);
    CHECK(describe(o) == "ok");
    CHECK(o.is_final);
    CHECK(tagged(o) == "5");
    CHECK(o.logs.empty());
  }
}

CONTRACT_CASE("an answer may be a text about final_answer", "[final]") {
  auto s = fx.open(spec_with({final_answer_spec()}));
  CHECK(!fx.run(*s, "print('final_answer(5)')\n'final_answer(6)'").is_final);
  auto o = fx.run(*s, "final_answer('I call final_answer(5)')\nprint('after')");
  CHECK(o.is_final);
  CHECK(tagged(o) == "\"I call final_answer(5)\"");
  CHECK(o.logs.empty());
}

CONTRACT_CASE("an answer that a bare except swallowed still is the answer, the first one counts",
              "[final]") {
  auto s = fx.open(spec_with({final_answer_spec()}));
  auto o = fx.run(
    *s, "for x in (1, 2):\n  try:\n    final_answer(x)\n  except:\n    pass\nraise ValueError");
  CHECK(o.end == snippet_end::ok);
  CHECK(o.is_final);
  CHECK(tagged(o) == "1");
}

CONTRACT_CASE("a final answer from a thread counts", "[final]") {
  auto s = fx.open(spec_with({final_answer_spec()}));
  auto o = fx.run(*s, "import threading\nt = threading.Thread(target=final_answer, args=(7,))\n"
                      "t.start()\nt.join()\n8");
  CHECK(o.is_final);
  CHECK(tagged(o) == "7");
  CHECK(o.logs.empty());
}

CONTRACT_CASE("a variable called final_answer does not erase the tool", "[final]") {
  auto s = fx.open(spec_with({final_answer_spec()}));
  CHECK(tagged(fx.run(*s, "final_answer = 3.21\nfinal_answer(final_answer)")) == "3.21");
}

CONTRACT_CASE("an attribute or a key called final_answer is left alone", "[final]") {
  auto s = fx.open(spec_with({final_answer_spec()}));
  fx.run(*s, "class C: pass\nobj, d = C(), {}");
  CHECK(describe(fx.run(*s, "obj.final_answer = 5\nd['final_answer'] = 6")) == "ok");
  CHECK(tagged(fx.run(*s, "[vars(obj), d]")) == R"([{"final_answer":5},{"final_answer":6}])");
  CHECK(tagged(fx.run(*s, "final_answer(obj.final_answer)")) == "5");
}

CONTRACT_CASE("assigning to final_answer without a call is an error before anything runs",
              "[final]") {
  auto s = fx.open(spec_with({final_answer_spec()}));
  for (auto* code : {"print('ran')\nfinal_answer = 3", "def final_answer(x): return x",
                     "from math import pi as final_answer"}) {
    INFO(code);
    auto o = fx.run(*s, code);
    CHECK(o.end == snippet_end::raised);
    CHECK(o.error->message.find("would erase it") != std::string::npos);
    CHECK(o.logs.empty());
  }
  CHECK(fx.run(*s, "final_answer(1)").is_final);
}

CONTRACT_CASE("an answer that cannot cross is an error that the model sees", "[final]") {
  auto s = fx.open(spec_with({final_answer_spec()}));
  auto o = fx.run(*s, "x = 1\nfinal_answer(lambda: 1)");
  CHECK(o.error->type == "TypeError");
  CHECK(o.error->line == 2);
  auto large = fx.run(*s, "final_answer('x' * 2_000_000)");
  CHECK(large.end == snippet_end::raised);
  CHECK(large.error->message.find("Give a shorter one") != std::string::npos);
  CHECK(!large.is_final);
}

CONTRACT_CASE("a custom final_answer is asked first, and its result is the answer", "[final]") {
  auto custom = make_tool("final_answer", {"answer", "sure"});
  custom.ends_run = true;
  auto s = fx.open_with({{"final_answer",
                          [](const json& a) -> result<json> {
                            if (!a["sure"].get<bool>())
                              return fail(errc::denied, "be sure first");
                            return "checked " + a["answer"].get<std::string>();
                          }}},
                        spec_with({custom}));
  CHECK(describe(fx.run(*s, "final_answer('x', False)")) == "raised ToolError: be sure first");
  auto o = fx.run(*s, "final_answer('x', sure=True)\nprint('after')");
  CHECK(o.is_final);
  CHECK(tagged(o) == "\"checked x\"");
  CHECK(o.logs.empty());
}
