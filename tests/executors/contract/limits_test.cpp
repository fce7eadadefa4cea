#include "tests/executors/contract/contract.hpp"

#include <fstream>
#include <iterator>

#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

CONTRACT_CASE("asking for more memory than allowed is a MemoryError, and the sandbox lives on",
              "[limits]") {
  fx.needs(fx.can().memory_limit);
  sandbox_spec spec;
  spec.limits.memory_bytes = 256u << 20;
  auto s = fx.open(spec);
  auto o = fx.run(*s, "x = []\nwhile True: x.append(bytearray(1 << 20))");
  CHECK(o.end == snippet_end::raised);
  CHECK(o.error->type == "MemoryError");
  CHECK(tagged(fx.run(*s, "del x\n1")) == "1");
}

CONTRACT_CASE("more open files than allowed are refused", "[limits]") {
  sandbox_spec spec;
  spec.limits.open_files = 40;
  auto s = fx.open(spec);
  auto o = fx.run(*s, "import os\nfds = []\nwhile True: fds.append(os.open('/dev/null', 0))");
  CHECK(describe(o).starts_with("raised OSError: [Errno 24]"));
  CHECK(tagged(fx.run(*s, "for f in fds: os.close(f)\nlen(fds) < 40")) == "true");
}

CONTRACT_CASE("a file larger than allowed is refused", "[limits]") {
  sandbox_spec spec;
  spec.limits.file_bytes = 1u << 20;
  auto s = fx.open(spec);
  auto o = fx.run(*s, "open('big', 'wb').write(b'x' * (2 << 20))");
  CHECK(describe(o).starts_with("raised OSError: [Errno 27]"));
  CHECK(fx.put(*s, "big2", std::string(2u << 20, 'x')).error().code == errc::over_budget);
  CHECK(tagged(fx.run(*s, "1")) == "1");
}

CONTRACT_CASE("no core is dumped", "[limits]") {
  auto s = fx.open();
  CHECK(tagged(fx.run(*s, "import resource\nlist(resource.getrlimit(resource.RLIMIT_CORE))"))
        == "[0,0]");
  CHECK(describe(fx.sh(*s, "kill -SEGV $$")) == "signalled 11");
  CHECK(fx.sh(*s, "ls").output.empty());
}

CONTRACT_CASE("the code can gain no privilege by a setuid program", "[limits]") {
  contract_fixture::processes seen;
  auto s = fx.open_seen(seen);
  std::ifstream status{"/proc/" + std::to_string(seen.worker) + "/status"};
  std::string text{std::istreambuf_iterator<char>{status}, {}};
  CHECK(text.find("NoNewPrivs:\t1\n") != std::string::npos);
}

CONTRACT_CASE("a fork bomb stays within its limit and dies with the sandbox", "[limits]") {
  fx.needs(fx.can().process_limit);
  sandbox_spec spec;
  spec.limits.processes = 20;
  auto s = fx.open(spec);
  auto other = fx.open(spec);
  auto o = fx.run(*s, "import os, time\nn = 0\ntry:\n  while True:\n"
                      "    if os.fork() == 0: time.sleep(600)\n    n += 1\n"
                      "except BlockingIOError:\n  pass\nn < 20");
  CHECK(tagged(o) == "true");
  CHECK(tagged(fx.run(*other, "import subprocess\nsubprocess.run(['true']).returncode")) == "0");
  CHECK(fx.close(*s).clean());
}

CONTRACT_CASE("a full disk is an error of the code, and the sandbox lives on", "[limits]") {
  fx.needs(fx.can().disk_limit);
  auto s = fx.open();
  auto o = fx.run(*s, "import os, tempfile\nwith open(tempfile.gettempdir() + '/x', 'wb') as f:\n"
                      "  f.write(b'x' * (17 << 20))");
  CHECK(describe(o).starts_with("raised OSError: [Errno 28]"));
  CHECK(tagged(fx.run(*s, "1")) == "1");
}

CONTRACT_CASE("no network is to be had", "[limits]") {
  fx.needs(fx.can().network_none);
  auto s = fx.open();
  auto o = fx.run(*s, "import socket\nsocket.create_connection(('127.0.0.1', 9), timeout=5)");
  CHECK(o.error->type == "PermissionError");
}

CONTRACT_CASE("the host's files and processes are out of reach", "[limits]") {
  fx.needs(fx.can().isolated);
  auto s = fx.open();
  auto host = std::to_string(::getpid());
  CHECK(tagged(fx.run(*s, "import os\n[os.path.exists(p) for p in "
                          "('/home', '/root', '/var', '/proc/"
                            + host + "/exe')]"))
        == "[false,false,false,false]");
  CHECK(describe(fx.run(*s, "open('/usr/x', 'w')")).starts_with("raised OSError: [Errno 30]"));
}
