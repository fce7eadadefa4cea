#include "tests/jail/jail_fixture.hpp"

#include <atomic>

using namespace troupe;
using namespace troupe::test;

namespace {

sandbox_spec spec_with(std::vector<tool_spec> tools) {
  sandbox_spec spec;
  spec.tools = std::move(tools);
  return spec;
}

result<json> echo(const json& arguments) {
  return arguments;
}

}  // namespace

TEST_CASE("final_answer ends the snippet at once, from anywhere", "[jail][final]") {
  jail_fixture fx;
  auto s = fx.open(spec_with({final_answer_spec()}));
  for (auto* code : {
         "final_answer(5)\nprint('after')",
         "final_answer(answer=5)\nprint('after')",
         "def f():\n  def g(): final_answer(5)\n  g()\n  print('after')\nf()\nprint('after')",
         "try:\n  final_answer(5)\nexcept Exception:\n  pass\nprint('after')",
         "text = 'final_answer(7)'\n[final_answer(5) for _ in range(3)]\nprint('after')",
         R"(for i in range(9):
  try:
    try:
      final_answer(5)
    finally:
      x = 1
  except ValueError: pass
  print('after'))",
       }) {
    INFO(code);
    auto o = fx.run(*s, code);
    CHECK(describe(o) == "ok");
    CHECK(o.is_final);
    CHECK(tagged(o) == "5");
    CHECK(o.logs.empty());
  }
}

TEST_CASE("an answer that a bare except swallowed still is the answer, the first one counts",
          "[jail][final]") {
  jail_fixture fx;
  auto s = fx.open(spec_with({final_answer_spec()}));
  auto o = fx.run(
    *s, "for x in (1, 2):\n  try:\n    final_answer(x)\n  except:\n    pass\nraise ValueError");
  CHECK(o.end == snippet_end::ok);
  CHECK(o.is_final);
  CHECK(tagged(o) == "1");
}

TEST_CASE("a variable called final_answer does not erase the tool", "[jail][final]") {
  jail_fixture fx;
  auto s = fx.open(spec_with({final_answer_spec()}));
  auto o = fx.run(*s, "final_answer = 3.21\nfinal_answer(final_answer)");
  CHECK(o.is_final);
  CHECK(tagged(o) == "3.21");
  CHECK(tagged(fx.run(*s, "final_answer = 1\nfor final_answer in range(4): pass\n"
                          "final_answer += 1\nfinal_answer(answer=final_answer)"))
        == "4");
  CHECK(tagged(fx.run(*s, "def f(final_answer): return final_answer * 2\n"
                          "final_answer(f(4))"))
        == "8");
  auto untouched = fx.run(*s, "class O: pass\no = O()\no.final_answer = 5\no.final_answer");
  CHECK(!untouched.is_final);
  CHECK(tagged(untouched) == "5");
}

TEST_CASE("assigning to final_answer without a call is an error before anything runs",
          "[jail][final]") {
  jail_fixture fx;
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

TEST_CASE("an answer that cannot cross is an error that the model sees", "[jail][final]") {
  jail_fixture fx;
  auto s = fx.open(spec_with({final_answer_spec()}));
  auto o = fx.run(*s, "x = 1\nfinal_answer(lambda: 1)");
  CHECK(o.end == snippet_end::raised);
  CHECK(o.error->type == "TypeError");
  CHECK(o.error->line == 2);
  CHECK(o.error->message.find("type function cannot leave the sandbox") != std::string::npos);
  auto large = fx.run(*s, "final_answer('x' * 2_000_000)");
  CHECK(large.end == snippet_end::raised);
  CHECK(large.error->message.find("Give a shorter one") != std::string::npos);
}

TEST_CASE("a custom final_answer is asked first, and its result is the answer", "[jail][final]") {
  jail_fixture fx;
  auto custom = make_tool("final_answer", {"answer", "sure"});
  custom.ends_run = true;
  auto s = fx.open_with({{"final_answer",
                          [](const json& a) -> result<json> {
                            if (!a["sure"].get<bool>())
                              return fail(errc::denied, "be sure first");
                            return "checked " + a["answer"].get<std::string>();
                          }}},
                        spec_with({custom}));
  auto unsure = fx.run(*s, "final_answer('x', False)");
  CHECK(describe(unsure) == "raised ToolError: be sure first");
  auto o = fx.run(*s, "final_answer('x', sure=True)\nprint('after')");
  CHECK(o.is_final);
  CHECK(tagged(o) == "\"checked x\"");
  CHECK(o.logs.empty());
}

TEST_CASE("a tool takes positional and keyword arguments and gives its result", "[jail][tools]") {
  jail_fixture fx;
  auto t = make_tool("echo", {"a", "b"});
  t.parameters["properties"]["c"] = {{"default", 7}};
  t.parameters["properties"]["d"] = ordered_json::object();
  auto s = fx.open_with({{"echo", echo}}, spec_with({t}));
  CHECK(tagged(fx.run(*s, "echo(1, 2)")) == R"({"a":1,"b":2,"c":7})");
  CHECK(tagged(fx.run(*s, "echo(1, b=(2, 3), d=None)")) == R"({"a":1,"b":[2,3],"c":7,"d":null})");
  CHECK(tagged(fx.run(*s, "echo(b={'x': 1}, a='t', c=0)['b']['x']")) == "1");
  CHECK(fx.run(*s, "echo(1, 2)").usage.tool_calls == 1);
  CHECK(tagged(fx.run(*s, "import inspect\n[echo.__name__, echo.__doc__, "
                          "str(inspect.signature(echo))]"))
        == R"x(["echo","A tool of a test.","(a, b, c=7, d=None)"])x");
}

TEST_CASE("wrong arguments are told in Python's words and never reach the host", "[jail][tools]") {
  jail_fixture fx;
  std::atomic<int> calls = 0;
  auto s = fx.open_with({{"echo",
                          [&](const json& a) -> result<json> {
                            ++calls;
                            return a;
                          }}},
                        spec_with({make_tool("echo", {"a", "b"})}));
  CHECK(describe(fx.run(*s, "echo(1)"))
        == "raised TypeError: echo() missing required argument: 'b'");
  CHECK(describe(fx.run(*s, "echo(1, 2, 3)"))
        == "raised TypeError: echo() takes 2 positional arguments but 3 were given");
  CHECK(describe(fx.run(*s, "echo(1, 2, x=3)"))
        == "raised TypeError: echo() got an unexpected keyword argument 'x'; it takes: a, b");
  CHECK(describe(fx.run(*s, "echo(1, 2, a=3)"))
        == "raised TypeError: echo() got multiple values for argument 'a'");
  CHECK(fx.run(*s, "echo(1, object())").error->message.find("cannot be sent") != std::string::npos);
  CHECK(calls == 0);
}

TEST_CASE("a tool's error is an exception that the code can catch", "[jail][tools]") {
  jail_fixture fx;
  auto s = fx.open_with(
    {{"broken",
      [](const json&) -> result<json> { return fail(errc::unavailable, "it's down ☹"); }}},
    spec_with({make_tool("broken", {})}));
  auto o = fx.run(*s, "x = 0\nbroken()");
  CHECK(describe(o) == "raised ToolError: it's down ☹");
  CHECK(o.error->line == 2);
  CHECK(tagged(fx.run(*s, "try:\n  broken()\nexcept RuntimeError as e:\n  r = str(e)\nr"))
        == "\"it's down ☹\"");
}

TEST_CASE("a value from the host arrives as plain Python, also with a type key", "[jail][tools]") {
  jail_fixture fx;
  auto s =
    fx.open_with({{"get",
                   [](const json&) -> result<json> {
                     return json::parse(R"({"__type__": "tuple", "data": [1, 2.5, null, "x"]})");
                   }}},
                 spec_with({make_tool("get", {})}));
  CHECK(tagged(fx.run(*s, "x = get()\n[type(x).__name__, x['__type__'], x['data']]"))
        == R"(["dict","tuple",[1,2.5,null,"x"]])");
}

TEST_CASE("eight threads call tools at once and each gets its own answer", "[jail][tools]") {
  jail_fixture fx;
  // Answers only once all eight calls are open, and then the last first.
  struct waiting {
    std::vector<std::pair<call_id, json>> calls;
  };
  auto open_calls = std::make_shared<waiting>();
  auto s = fx.open(spec_with({make_tool("double", {"x"})}));
  s->listen({}, [weak = std::weak_ptr{s}, open_calls](code_call call) {
    open_calls->calls.emplace_back(call.id, call.arguments["x"]);
    if (open_calls->calls.size() < 8)
      return;
    auto live = weak.lock();
    for (auto it = open_calls->calls.rbegin(); live && it != open_calls->calls.rend(); ++it)
      live->answer(it->first, json(it->second.get<int>() * 2));
    open_calls->calls.clear();
  });
  for (int round = 0; round < 20; ++round) {
    auto o = fx.run(*s, "from concurrent.futures import ThreadPoolExecutor\n"
                        "with ThreadPoolExecutor(8) as pool:\n"
                        "  r = list(pool.map(double, range(8)))\nr");
    INFO(describe(o));
    REQUIRE(tagged(o) == "[0,2,4,6,8,10,12,14]");
    CHECK(o.usage.tool_calls == 8);
  }
}

TEST_CASE("main thread and others may call at the same time, over and over", "[jail][tools]") {
  jail_fixture fx;
  auto s = fx.open_with({{"echo", echo}}, spec_with({make_tool("echo", {"x"})}));
  auto o = fx.run(*s, R"(
import threading
bad = []
def work(base):
  for i in range(60):
    if echo(base + i) != {"x": base + i}: bad.append(base + i)
threads = [threading.Thread(target=work, args=(1000 * k,)) for k in range(1, 5)]
for t in threads: t.start()
work(0)
for t in threads: t.join()
bad
)");
  INFO(describe(o));
  CHECK(tagged(o) == "[]");
  CHECK(o.usage.tool_calls == 300);
}

TEST_CASE("a soft deadline cuts a wait for a tool, and the late answer disturbs nothing",
          "[jail][tools]") {
  jail_fixture fx;
  std::mutex mutex;
  std::vector<call_id> unanswered;
  auto s = fx.open(spec_with({make_tool("slow", {}), make_tool("fast", {})}));
  s->listen({}, [&, weak = std::weak_ptr{s}](code_call call) {
    auto live = weak.lock();
    if (call.tool == "slow") {
      std::lock_guard lock{mutex};
      unanswered.push_back(call.id);
      return;
    }
    for (auto id : unanswered)
      live->answer(id, json("late"));
    live->answer(call.id, json("fast"));
  });
  auto o =
    fx.run(*s, snippet{.code = "x = 1\nslow()",
                       .soft_deadline = steady_clock::now() + std::chrono::milliseconds{100}});
  CHECK(o.end == snippet_end::soft_timeout);
  CHECK(o.error->line == 2);
  CHECK(tagged(fx.run(*s, "[fast(), x]")) == R"(["fast",1])");
}

TEST_CASE("a thread that outlives its snippet cannot call tools any more", "[jail][tools]") {
  jail_fixture fx;
  std::atomic<int> calls = 0;
  auto s = fx.open_with({{"echo",
                          [&](const json& a) -> result<json> {
                            ++calls;
                            return a;
                          }}},
                        spec_with({make_tool("echo", {})}));
  auto o = fx.run(*s, R"(
import threading
go, said = threading.Event(), []
def stray():
  go.wait()
  try:
    echo()
  except RuntimeError as e:
    said.append(str(e))
t = threading.Thread(target=stray)
t.start()
import os
os.register_at_fork  # the module is loaded
def end_later():
  import time
  time.sleep(0.05)
  go.set()
threading.Thread(target=end_later).start()
)");
  CHECK(describe(o) == "ok");
  // Between the snippets the thread wakes up and calls.
  std::promise<void> later;
  fx.io.in(std::chrono::milliseconds{200}, [&] { later.set_value(); });
  later.get_future().wait();
  CHECK(tagged(fx.run(*s, "t.join()\nsaid"))
        == R"(["echo was called after its snippet had ended"])");
  CHECK(calls == 0);
}

TEST_CASE("a thread that waits for a tool when its snippet ends is told so", "[jail][tools]") {
  jail_fixture fx;
  auto s = fx.open(spec_with({make_tool("never", {}), make_tool("echo", {})}));
  // The first echo is answered once the other thread's call has come: the thread surely waits.
  s->listen({}, [weak = std::weak_ptr{s}, waits = false,
                 held = std::optional<call_id>{}](code_call call) mutable {
    auto live = weak.lock();
    if (call.tool == "never")
      waits = true;
    else
      held = call.id;
    if (live && waits && held)
      live->answer(*std::exchange(held, std::nullopt), json("back"));
  });
  auto o =
    fx.run(*s, "import threading\nsaid = []\ndef w():\n  try: never()\n  except RuntimeError as "
               "e: said.append(str(e))\nt = threading.Thread(target=w)\nt.start()\necho()");
  CHECK(tagged(o) == "\"back\"");
  auto next = fx.run(*s, "t.join()\n[echo(), said]");
  INFO(describe(next));
  CHECK(tagged(next) == R"(["back",["the snippet ended before the tool answered"]])");
}

TEST_CASE("a thread that reads the next request, too, learns that its snippet has ended",
          "[jail][tools]") {
  jail_fixture fx;
  auto s = fx.open(spec_with({make_tool("never", {})}));
  std::promise<void> called;
  s->listen({}, [&](const code_call&) { called.set_value(); });
  // The thread waits and reads for all; the main thread is slow to come back from its reply.
  auto o = fx.run(*s, R"(
import threading, time, troupe_bridge
said, write, slow = [], troupe_bridge.Bridge._write, [True]
def write_slowly(self, data):
  write(self, data)
  if slow and threading.current_thread() is threading.main_thread(): time.sleep(slow.pop() * 0.2)
def w():
  try: never()
  except RuntimeError as e: said.append(str(e))
t = threading.Thread(target=w)
t.start()
while not any(s is not None for s in [b for b in __import__('gc').get_objects()
              if isinstance(b, troupe_bridge.Bridge)][0]._calls.values()): time.sleep(0.001)
time.sleep(0.05)
troupe_bridge.Bridge._write = write_slowly
)");
  INFO(describe(o));
  called.get_future().wait();
  CHECK(tagged(fx.run(*s, {.code = "t.join()\nsaid",
                           .hard_deadline = steady_clock::now() + std::chrono::seconds{10}}))
        == R"(["the snippet ended before the tool answered"])");
}

TEST_CASE("more tool calls than allowed are refused, then the sandbox is ended", "[jail][tools]") {
  jail_fixture fx;
  auto spec = spec_with({make_tool("echo", {})});
  spec.limits.tool_calls = 5;
  auto s = fx.open_with({{"echo", echo}}, spec);
  CHECK(describe(fx.run(*s, "for _ in range(6): echo()"))
        == "raised ToolError: more than 5 tool calls in one snippet");
  CHECK(describe(fx.run(*s, "for _ in range(5): echo()")) == "ok");
  auto o = fx.run(*s, "while True:\n  try: echo()\n  except RuntimeError: pass");
  CHECK(describe(o) == "protocol (tool calls without end)");
}

TEST_CASE("the tool calls of one snippet are bounded in their bytes too", "[jail][tools]") {
  jail_fixture fx;
  auto spec = spec_with({make_tool("keep", {"text"})});
  spec.limits.call_bytes = 100'000;
  auto s = fx.open_with({{"keep", [](const json&) { return json(1); }}}, spec);
  CHECK(describe(fx.run(*s, "for _ in range(20): keep('x' * 10_000)"))
        == "raised ToolError: more than 100000 bytes in the tool calls of one snippet");
  CHECK(tagged(fx.run(*s, "keep('x')")) == "1");
}

TEST_CASE("tools without a listener fail as unknown", "[jail][tools]") {
  jail_fixture fx;
  auto s = fx.open(spec_with({make_tool("echo", {})}));
  CHECK(describe(fx.run(*s, "echo()")) == "raised ToolError: there is no tool 'echo'");
}
