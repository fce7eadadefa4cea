#include "tests/executors/contract/contract.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

result<json> echo(const json& arguments) {
  return arguments;
}

}  // namespace

CONTRACT_CASE("a tool takes positional and keyword arguments and gives its result", "[tools]") {
  auto t = make_tool("echo", {"a", "b"});
  t.parameters["properties"]["c"] = {{"default", 7}};
  auto s = fx.open_with({{"echo", echo}}, spec_with({t}));
  CHECK(tagged(fx.run(*s, "echo(1, 2)")) == R"({"a":1,"b":2,"c":7})");
  CHECK(tagged(fx.run(*s, "echo(b=2, a=1, c='x')")) == R"({"a":1,"b":2,"c":"x"})");
}

CONTRACT_CASE("inspect and help show a tool's parameters", "[tools]") {
  auto t = make_tool("echo", {"a", "b"});
  t.parameters["properties"]["c"] = {{"default", 7}};
  auto odd = make_tool("odd", {"not-a-name"});
  auto s = fx.open_with({{"echo", echo}, {"odd", echo}}, spec_with({t, odd}));
  CHECK(tagged(fx.run(*s, "import inspect\nstr(inspect.signature(echo))")) == "\"(a, b, c=7)\"");
  CHECK(tagged(fx.run(*s, "str(inspect.signature(odd))")) == "\"(*args, **kwargs)\"");
  CHECK(tagged(fx.run(*s, "import pydoc\n'echo(a, b, c=7)' in pydoc.plain(pydoc.render_doc(echo))"))
        == "true");
}

CONTRACT_CASE("a hundred calls one after the other keep their order", "[tools]") {
  std::vector<int> seen;
  auto s = fx.open_with({{"next",
                          [&](const json& a) -> result<json> {
                            seen.push_back(a["x"].get<int>());
                            return a["x"].get<int>() + 1;
                          }}},
                        spec_with({make_tool("next", {"x"})}));
  auto o = fx.run(*s, "x = 0\nfor _ in range(100): x = next(x)\nx");
  CHECK(tagged(o) == "100");
  CHECK(o.usage.tool_calls == 100);
  CHECK(seen.size() == 100);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
}

CONTRACT_CASE("wrong arguments are told in Python's words and never reach the host", "[tools]") {
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
  CHECK(fx.run(*s, "echo(1, object())").error->message.find("cannot be sent") != std::string::npos);
  CHECK(fx.run(*s, "echo(1, 'x' * 2_000_000)").error->message.find("too large")
        != std::string::npos);
  CHECK(calls == 0);
}

CONTRACT_CASE("a tool's error is an exception that the code can catch", "[tools]") {
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

CONTRACT_CASE("a value from the host arrives as plain Python, also a large one", "[tools]") {
  auto s = fx.open_with(
    {{"get",
      [](const json&) -> result<json> {
        return json::parse(R"({"__type__": "tuple", "data": [1, 2.5, null, "x"]})");
      }},
     {"large", [](const json&) -> result<json> { return std::string(3'000'000, 'x'); }}},
    spec_with({make_tool("get", {}), make_tool("large", {})}));
  CHECK(tagged(fx.run(*s, "x = get()\n[type(x).__name__, x['__type__'], x['data']]"))
        == R"(["dict","tuple",[1,2.5,null,"x"]])");
  CHECK(tagged(fx.run(*s, "len(large())")) == "3000000");
}

CONTRACT_CASE("eight threads call tools at once and each gets its own answer", "[tools]") {
  // Answers only once all eight calls are open, and then the last first.
  auto open_calls = std::make_shared<std::vector<std::pair<call_id, json>>>();
  auto s = fx.open(spec_with({make_tool("double", {"x"})}));
  s->listen({}, [weak = std::weak_ptr{s}, open_calls](code_call call) {
    open_calls->emplace_back(call.id, call.arguments["x"]);
    if (open_calls->size() < 8)
      return;
    auto live = weak.lock();
    for (auto it = open_calls->rbegin(); live && it != open_calls->rend(); ++it)
      live->answer(it->first, json(it->second.get<int>() * 2));
    open_calls->clear();
  });
  for (int round = 0; round < 5; ++round) {
    auto o = fx.run(*s, "from concurrent.futures import ThreadPoolExecutor\n"
                        "with ThreadPoolExecutor(8) as pool:\n"
                        "  r = list(pool.map(double, range(8)))\nr");
    INFO(describe(o));
    REQUIRE(tagged(o) == "[0,2,4,6,8,10,12,14]");
    CHECK(o.usage.tool_calls == 8);
  }
}

CONTRACT_CASE("main thread and others may call at the same time, over and over", "[tools]") {
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

CONTRACT_CASE("a soft deadline cuts a wait for a tool, and the late answer disturbs nothing",
              "[tools]") {
  auto s = fx.open(spec_with({make_tool("slow", {}), make_tool("fast", {})}));
  s->listen(
    {}, [weak = std::weak_ptr{s}, late = std::vector<call_id>{}](const code_call& call) mutable {
      auto live = weak.lock();
      if (call.tool == "slow") {
        late.push_back(call.id);
        return;
      }
      for (auto id : late)
        live->answer(id, json("late"));
      live->answer(call.id, json("fast"));
    });
  auto o =
    fx.run(*s, snippet{.code = "x = 1\nslow()", .soft_deadline = steady_clock::now() + 100ms});
  CHECK(o.end == snippet_end::soft_timeout);
  CHECK(o.error->line == 2);
  CHECK(tagged(fx.run(*s, "[fast(), x]")) == R"(["fast",1])");
}

CONTRACT_CASE("an answer that nobody waits for, or a second one, is ignored", "[tools]") {
  auto s = fx.open(spec_with({make_tool("echo", {})}));
  s->answer(call_id{12'345}, json(1));
  s->listen({}, [weak = std::weak_ptr{s}](const code_call& call) {
    if (auto live = weak.lock()) {
      live->answer(call_id{call.id.value + 1}, json("wrong"));
      live->answer(call.id, json("right"));
      live->answer(call.id, json("again"));
    }
  });
  CHECK(tagged(fx.run(*s, "[echo(), echo()]")) == R"(["right","right"])");
}

CONTRACT_CASE("a thread that outlives its snippet cannot call tools any more", "[tools]") {
  std::atomic<int> calls = 0;
  auto s = fx.open_with({{"echo",
                          [&](const json& a) -> result<json> {
                            ++calls;
                            return a;
                          }}},
                        spec_with({make_tool("echo", {})}));
  fx.run(*s, R"(
import threading, os, time
said = []
def stray():
  while not os.path.exists('go'): time.sleep(0.005)
  try:
    echo()
  except RuntimeError as e:
    said.append(str(e))
t = threading.Thread(target=stray)
t.start()
)");
  // Between the snippets the thread wakes up and calls.
  REQUIRE(fx.put(*s, "go", ""));
  fx.pause(300ms);
  CHECK(tagged(fx.run(*s, "t.join()\nsaid"))
        == R"(["echo was called after its snippet had ended"])");
  CHECK(calls == 0);
}

CONTRACT_CASE("a call that is open when the snippet ends is told so", "[tools]") {
  auto s = fx.open(spec_with({make_tool("never", {}), make_tool("echo", {})}));
  // The first echo is answered once the other thread's call has come: the thread surely waits.
  s->listen({}, [weak = std::weak_ptr{s}, waits = false,
                 held = std::optional<call_id>{}](const code_call& call) mutable {
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
  CHECK(tagged(fx.run(*s, "t.join()\n[echo(), said]"))
        == R"(["back",["the snippet ended before the tool answered"]])");
}

CONTRACT_CASE("a thread that reads the next request, too, learns that its snippet has ended",
              "[tools]") {
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

CONTRACT_CASE("more tool calls than allowed are refused, then the sandbox is ended", "[tools]") {
  auto spec = spec_with({make_tool("echo", {})});
  spec.limits.tool_calls = 5;
  auto s = fx.open_with({{"echo", echo}}, spec);
  CHECK(describe(fx.run(*s, "for _ in range(6): echo()"))
        == "raised ToolError: more than 5 tool calls in one snippet");
  CHECK(describe(fx.run(*s, "for _ in range(5): echo()")) == "ok");
  auto o = fx.run(*s, "while True:\n  try: echo()\n  except RuntimeError: pass");
  CHECK(describe(o) == "protocol (tool calls without end)");
}

CONTRACT_CASE("the tool calls of one snippet are bounded in their bytes too", "[tools]") {
  auto spec = spec_with({make_tool("keep", {"text"})});
  spec.limits.call_bytes = 100'000;
  auto s = fx.open_with({{"keep", [](const json&) { return json(1); }}}, spec);
  CHECK(describe(fx.run(*s, "for _ in range(20): keep('x' * 10_000)"))
        == "raised ToolError: more than 100000 bytes in the tool calls of one snippet");
  CHECK(tagged(fx.run(*s, "keep('x')")) == "1");
}

CONTRACT_CASE("more calls at once than anybody makes are refused", "[tools]") {
  auto s = fx.open(spec_with({make_tool("never", {})}));
  s->listen({}, [](const code_call&) {});
  // Forged, since threads are bounded themselves.
  auto o = fx.run(*s, R"(
import os, json
def frame(n):
  b = json.dumps({"op": "call", "id": 1, "call": n, "tool": "never", "arguments": {}}).encode()
  return len(b).to_bytes(4, "big") + b
os.write(3, b"".join(frame(n) for n in range(1000, 1065)))
head = os.read(3, 4)
json.loads(os.read(3, int.from_bytes(head, "big")))["error"]
)");
  CHECK(tagged(o) == "\"more than 64 tool calls at once\"");
}

CONTRACT_CASE("an unknown tool, and one without a listener, fail as such", "[tools]") {
  auto s = fx.open(spec_with({make_tool("echo", {})}));
  CHECK(describe(fx.run(*s, "echo()")) == "raised ToolError: there is no tool 'echo'");
  CHECK(describe(fx.run(*s, "other()")) == "raised NameError: name 'other' is not defined");
  s->listen({}, [](const code_call&) { FAIL("never called"); });
  CHECK(describe(
          fx.run(*s, "import troupe_tools, gc, troupe_bridge\n"
                     "gc.unfreeze()\n"
                     "b = [o for o in gc.get_objects() if isinstance(o, troupe_bridge.Bridge)][0]\n"
                     "troupe_tools.make_tool({'name': 'forged'}, b, None)()"))
        == "raised ToolError: there is no tool 'forged'");
}

CONTRACT_CASE("the time of a call that has its own is not the snippet's", "[tools]") {
  auto slow = make_tool("ask", {});
  slow.own_time = true;
  auto s = fx.open(spec_with({slow, make_tool("echo", {})}));
  s->listen({}, [&, box = s.get()](const code_call& c) {
    fx.io.in(c.tool == "ask" ? 900ms : 0ms, [box, id = c.id] { box->answer(id, json{"late"}); });
  });
  auto now = steady_clock::now();
  snippet patient{"a = ask()\nb = ask()\n(a, b)", false, now + 500ms, now + 1500ms};
  auto o = fx.run(*s, patient);
  CHECK(tagged(o).find("late") != std::string::npos);
  CHECK(o.end == snippet_end::ok);
  CHECK(o.usage.wall >= 1800ms);
  now = steady_clock::now();
  auto after_it = fx.run(*s, snippet{"ask()\nwhile True: pass", false, now + 300ms, now + 9s});
  CHECK(after_it.end == snippet_end::soft_timeout);
  CHECK(after_it.usage.wall >= 1100ms);
  CHECK(after_it.usage.wall < 5s);
}
