#include "tests/executors/contract/contract.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

CONTRACT_CASE("stdout and stderr keep their order, also across subprocesses", "[output]") {
  auto s = fx.open();
  auto o = fx.run(*s, R"(
import sys, subprocess
print("one")
print("two", end=" ", file=sys.stderr)
print("three", "four", sep="-")
subprocess.run(["sh", "-c", "echo five; echo six >&2"], check=True)
sys.stdout.write("seven")
)");
  CHECK(describe(o) == "ok");
  CHECK(o.logs == "one\ntwo three-four\nfive\nsix\nseven");
  CHECK(o.logs_dropped == 0);
  CHECK(fx.run(*s, "print('next')").logs == "next\n");
}

CONTRACT_CASE("output is heard as it comes, and its middle is cut from the logs", "[output]") {
  sandbox_spec spec;
  spec.limits.shown_bytes = 1'000;
  auto s = fx.open(spec);
  std::string heard;
  s->listen([&](std::string_view bytes) { heard += bytes; }, {});
  auto o = fx.run(*s, "print('a' * 600)\nprint('b' * 4000)\nprint('c' * 300)");
  CHECK(heard.size() == 601 + 4001 + 301);
  CHECK(o.logs_dropped == heard.size() - 1'000);
  CHECK(o.logs.starts_with(std::string(500, 'a') + "\n... [3903 bytes cut] ...\n"));
  CHECK(o.logs.ends_with("b\n" + std::string(300, 'c') + "\n"));
  s->listen({}, {});
}

CONTRACT_CASE("output comes before the end of its snippet is told", "[output]") {
  auto s = fx.open();
  for (int i = 0; i < 50; ++i) {
    auto text = "line " + std::to_string(i);
    REQUIRE(fx.run(*s, "print('" + text + "')").logs == text + "\n");
  }
}

CONTRACT_CASE("bytes that are no text are made one, and NUL is kept", "[output]") {
  auto s = fx.open();
  CHECK(fx.run(*s, "import os\nos.write(1, b'\\xff\\x00z')\nNone").logs
        == std::string("\uFFFD\0z", 5));
  CHECK(fx.run(*s, "print('\\ud800')").logs == "?\n");
}

CONTRACT_CASE("printing without end is stopped at the limit", "[output]") {
  sandbox_spec spec;
  spec.limits.output_bytes = 1u << 20;
  auto s = fx.open(spec);
  auto o = fx.run(*s, "while True: print('x' * 1000)");
  CHECK(describe(o) == "output_limit (the code printed more than 1048576 bytes)");
  CHECK(o.logs.size() < 70u << 10);
  CHECK(o.logs_dropped > 900u << 10);
  CHECK(fx.is_gone(*s));
  CHECK(fx.close(*s).clean());
}

CONTRACT_CASE("just less than the limit is no flood", "[output]") {
  sandbox_spec spec;
  spec.limits.output_bytes = 1u << 20;
  auto s = fx.open(spec);
  for (int i = 0; i < 3; ++i)
    CHECK(describe(fx.run(*s, "import os\nb = b'x' * (1 << 16)\n"
                              "for _ in range(16): os.write(1, b)"))
          == "ok");
}

CONTRACT_CASE("output between snippets is bounded too", "[output]") {
  sandbox_spec spec;
  spec.limits.output_bytes = 1u << 20;
  auto s = fx.open(spec);
  fx.run(*s, "import threading, os\ndef flood():\n  while True: os.write(1, b'x' * 4096)\n"
             "threading.Thread(target=flood, daemon=True).start()");
  CHECK(fx.is_gone(*s));
  CHECK(fx.close(*s).clean());
}

CONTRACT_CASE("closed or replaced streams harm nobody", "[output]") {
  auto s = fx.open();
  CHECK(tagged(fx.run(*s, "import sys\nsys.stdout.close()\n1")) == "1");
  CHECK(tagged(fx.run(*s, "sys.stdout = None\nsys.stderr = None\n2")) == "2");
  auto raised = fx.run(*s, "1 / 0");
  CHECK(raised.error->type == "ZeroDivisionError");
  CHECK(tagged(fx.run(*s, "import os\nos.close(1)\nos.close(2)\n3")) == "3");
  CHECK(tagged(fx.run(*s, "4")) == "4");
}
