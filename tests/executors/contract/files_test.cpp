#include "tests/executors/contract/contract.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

errc code_of(const result<void>& r) {
  return r ? errc{} : r.error().code;
}

errc code_of(const result<std::string>& r) {
  return r ? errc{} : r.error().code;
}

/// What the request itself says, before anything is asked of the sandbox.
errc refused(const std::string& path, sandbox& s) {
  auto put = s.put({path, "x"}, [](const result<void>&) { FAIL("never accepted"); });
  auto get = s.get(path, 10, [](const result<std::string>&) { FAIL("never accepted"); });
  REQUIRE(!put);
  REQUIRE(!get);
  CHECK(put.error().code == get.error().code);
  return put.error().code;
}

}  // namespace

CONTRACT_CASE("a file that was put is there for the code", "[files]") {
  auto s = fx.open();
  REQUIRE(fx.put(*s, "in.txt", "hello\n"));
  CHECK(tagged(fx.run(*s, "open('in.txt').read()")) == R"("hello\n")");
}

CONTRACT_CASE("a file that the code wrote can be got", "[files]") {
  auto s = fx.open();
  fx.run(*s, "open('out.bin', 'wb').write(bytes(range(256)))");
  std::string all(256, '\0');
  for (int i = 0; i < 256; ++i)
    all[static_cast<std::size_t>(i)] = static_cast<char>(i);
  CHECK(fx.get(*s, "out.bin") == all);
}

CONTRACT_CASE("a put over a file replaces it, and an empty one is a file too", "[files]") {
  auto s = fx.open();
  REQUIRE(fx.put(*s, "f", "a longer text"));
  REQUIRE(fx.put(*s, "f", "short"));
  CHECK(fx.get(*s, "f") == "short");
  REQUIRE(fx.put(*s, "f", ""));
  CHECK(fx.get(*s, "f") == "");
}

CONTRACT_CASE("a put makes the directories above the file", "[files]") {
  auto s = fx.open();
  REQUIRE(fx.put(*s, "a/b/c/d.txt", "deep"));
  REQUIRE(fx.put(*s, "a/b/e.txt", "less deep"));
  CHECK(fx.get(*s, "a/b/c/d.txt") == "deep");
  CHECK(tagged(fx.run(*s, "import os\nsorted(os.listdir('a/b'))")) == R"(["c","e.txt"])");
}

CONTRACT_CASE("names of any script and odd ones survive both ways", "[files]") {
  auto s = fx.open();
  for (std::string path :
       {"Zoë/東京 \U0001F40D.txt", "with space/and\nnewline", "-rf", "~", "a'b\"c"}) {
    INFO(path);
    REQUIRE(fx.put(*s, path, path));
    CHECK(fx.get(*s, path) == path);
  }
  CHECK(tagged(fx.run(*s, "open('Zoë/東京 \U0001F40D.txt').read() != ''")) == "true");
}

CONTRACT_CASE("a large file crosses in pieces and is the same on both sides", "[files]") {
  auto s = fx.open();
  std::string bytes(5'000'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 2'654'435'761u >> 24);
  REQUIRE(fx.put(*s, "big", bytes));
  CHECK(tagged(fx.run(*s, "b = open('big', 'rb').read()\nopen('copy', 'wb').write(b)\nlen(b)"))
        == "5000000");
  CHECK((fx.get(*s, "copy") == bytes));
}

CONTRACT_CASE("a file whose size is a whole number of pieces ends where it ends", "[files]") {
  auto s = fx.open();
  for (std::size_t size : {384u << 10, 768u << 10, (384u << 10) - 1, (384u << 10) + 1}) {
    std::string bytes(size, 'x');
    REQUIRE(fx.put(*s, "f", bytes));
    CHECK((fx.get(*s, "f") == bytes));
  }
}

CONTRACT_CASE("a file at the limit is got, and one byte more is refused", "[files]") {
  auto s = fx.open();
  REQUIRE(fx.put(*s, "f", std::string(1'000, 'x')));
  CHECK(fx.get(*s, "f", 1'000).value().size() == 1'000);
  auto refusal = fx.get(*s, "f", 999);
  CHECK(code_of(refusal) == errc::over_budget);
  CHECK(refusal.error().detail == "f: larger than the 999 bytes allowed");
  CHECK(fx.get(*s, "f", 1'000).value().size() == 1'000);
}

CONTRACT_CASE("a sparse file of a terabyte is refused at once", "[files]") {
  auto s = fx.open();
  // Where the size of a file is limited too, the largest one must do.
  fx.run(*s, "f = open('sparse', 'wb')\n"
             "for size in (1 << 40, 60 << 20):\n"
             "  try: f.truncate(size)\n"
             "  except OSError: continue\n"
             "  break\n");
  CHECK(code_of(fx.get(*s, "sparse", 1u << 20)) == errc::over_budget);
}

CONTRACT_CASE("a file that is not there is not found", "[files]") {
  auto s = fx.open();
  CHECK(code_of(fx.get(*s, "nothing")) == errc::not_found);
  CHECK(code_of(fx.get(*s, "no/where")) == errc::not_found);
  CHECK(fx.get(*s, "nothing").error().detail == "nothing: No such file or directory");
}

CONTRACT_CASE("a path that could lead out is refused before it is asked for", "[files]") {
  auto s = fx.open();
  const std::vector<std::string> paths{"",
                                       "/etc/passwd",
                                       "..",
                                       "../x",
                                       "a/../../x",
                                       "a/..",
                                       "./x",
                                       "a//b",
                                       "a/",
                                       "a\xff",
                                       std::string("a\0b", 3),
                                       std::string(1'025, 'x'),
                                       "a/" + std::string(256, 'x')};
  for (const auto& path : paths) {
    INFO(path);
    CHECK(refused(path, *s) == errc::invalid_argument);
  }
  CHECK(tagged(fx.run(*s, "1")) == "1");
}

CONTRACT_CASE("no link leads a put or a get out of the work directory", "[files]") {
  auto s = fx.open();
  fx.run(*s,
         "import os\nos.mkdir('real')\nopen('real/f', 'w').write('x')\n"
         "os.symlink('/etc', 'etc')\nos.symlink('/etc/passwd', 'passwd')\n"
         "os.symlink('..', 'up')\nos.symlink('real', 'near')\nos.symlink('nowhere', 'dangling')\n"
         "os.symlink('real/f', 'f')");
  for (auto* path : {"etc/passwd", "passwd", "up/x", "near/f", "dangling", "f"}) {
    INFO(path);
    CHECK(code_of(fx.get(*s, path)) == errc::denied);
    CHECK(code_of(fx.put(*s, path, "y")) == errc::denied);
  }
  CHECK(tagged(fx.run(*s, "[open('real/f').read(), os.path.lexists('nowhere')]"))
        == R"(["x",false])");
  CHECK(fx.get(*s, "f").error().detail == "f: a symbolic link");
}

CONTRACT_CASE("a directory on the way that is none is refused", "[files]") {
  auto s = fx.open();
  REQUIRE(fx.put(*s, "file", "x"));
  CHECK(code_of(fx.put(*s, "file/inner", "y")) == errc::denied);
  CHECK(code_of(fx.get(*s, "file/inner")) == errc::denied);
  REQUIRE(fx.put(*s, "dir/f", "x"));
  CHECK(code_of(fx.put(*s, "dir", "y")) == errc::denied);
  CHECK(code_of(fx.get(*s, "dir")) == errc::denied);
}

CONTRACT_CASE("a fifo blocks neither a put nor a get", "[files]") {
  auto s = fx.open();
  fx.run(*s, "import os\nos.mkfifo('fifo')\nos.mkfifo('way')");
  auto start = steady_clock::now();
  CHECK(code_of(fx.get(*s, "fifo")) == errc::denied);
  CHECK(code_of(fx.put(*s, "fifo", "x")) == errc::denied);
  CHECK(code_of(fx.put(*s, "way/f", "x")) == errc::denied);
  CHECK(since(start) < std::chrono::seconds{10});
  CHECK(tagged(fx.run(*s, "2")) == "2");
}

CONTRACT_CASE("a file that may not be read is denied", "[files]") {
  auto s = fx.open();
  fx.run(*s, "import os\nopen('f', 'w').write('x')\nos.chmod('f', 0)");
  if (tagged(fx.run(*s, "os.access('f', os.R_OK)")) == "true")
    SKIP("inside, nothing is forbidden to the code's user");
  CHECK(code_of(fx.get(*s, "f")) == errc::denied);
  CHECK(code_of(fx.put(*s, "f", "y")) == errc::denied);
}

CONTRACT_CASE("a full work directory is told, and the sandbox lives on", "[files]") {
  fx.needs(fx.can().disk_limit);
  sandbox_spec spec;
  spec.limits.work_bytes = 1u << 20;
  auto s = fx.open(spec);
  REQUIRE(fx.put(*s, "half", std::string(700'000, 'x')));
  auto full = fx.put(*s, "more", std::string(700'000, 'x'));
  CHECK(code_of(full) == errc::over_budget);
  CHECK(full.error().detail == "more: No space left on device");
  CHECK(tagged(fx.run(*s, "3")) == "3");
}

CONTRACT_CASE("more than the work directory can hold is refused at once", "[files]") {
  sandbox_spec spec;
  spec.limits.work_bytes = 1u << 20;
  auto s = fx.open(spec);
  auto accepted = s->put({"f", std::string((1u << 20) + 1, 'x')},
                         [](const result<void>&) { FAIL("never accepted"); });
  CHECK(code_of(accepted) == errc::invalid_argument);
}

CONTRACT_CASE("put and get leave variables and pending output alone", "[files]") {
  auto s = fx.open();
  fx.run(*s, "x = 5");
  REQUIRE(fx.put(*s, "f", "1"));
  CHECK(fx.get(*s, "f") == "1");
  CHECK(tagged(fx.run(*s, "x")) == "5");
}

CONTRACT_CASE("files of the spec can be got back", "[files]") {
  sandbox_spec spec;
  spec.files = {{"data/a.csv", "1,2\n"}, {"b", std::string(1'000'000, 'b')}};
  auto s = fx.open(spec);
  CHECK(fx.get(*s, "data/a.csv") == "1,2\n");
  CHECK(fx.get(*s, "b").value().size() == 1'000'000);
}

CONTRACT_CASE("a sandbox that dies under a get answers it", "[files]") {
  auto s = fx.open();
  // A copy of the interpreter's handler that never answers.
  fx.run(*s, "import troupe_files, os, time\n"
             "def hang(request): time.sleep(0.2); os._exit(3)\ntroupe_files.serve = hang");
  auto got = fx.get(*s, "f");
  CHECK(code_of(got) == errc::unavailable);
  CHECK(got.error().detail == "the code ended the interpreter with exit status 3");
  CHECK(fx.is_gone(*s));
}
