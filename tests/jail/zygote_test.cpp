#include "tests/jail/jail_fixture.hpp"

#include <csignal>
#include <random>
#include <thread>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_CASE("a killed zygote takes no sandbox with it, and the next open starts another",
          "[jail][zygote]") {
  jail_fixture fx;
  auto s = fx.open();
  fx.run(*s, "x = 5");
  auto before = zygotes();
  REQUIRE(before.size() == 1);
  ::kill(before[0], SIGKILL);
  CHECK(tagged(fx.run(*s, "x")) == "5");
  auto t = fx.open();
  CHECK(tagged(fx.run(*t, "1 + 1")) == "2");
  CHECK(tagged(fx.run(*s, "x + 1")) == "6");
  CHECK(zygotes() != before);
  CHECK(fx.close(*s).clean());
  CHECK(fx.close(*t).clean());
}

TEST_CASE("a zygote killed in the middle of many opens loses none of them", "[jail][zygote]") {
  jail_fixture fx;
  auto first = fx.open();
  std::vector<std::shared_ptr<std::promise<bool>>> opened;
  for (int i = 0; i < 20; ++i) {
    opened.push_back(std::make_shared<std::promise<bool>>());
    fx.jail->open({}, [p = opened.back()](auto s) { p->set_value(s.has_value()); });
    if (i == 10)
      ::kill(zygotes().at(0), SIGKILL);
  }
  for (auto& p : opened)
    CHECK(p->get_future().get());
}

TEST_CASE("zygotes killed at any moment lose no open and leave no child", "[jail][zygote]") {
  jail_fixture fx;
  static_cast<void>(fx.open());
  std::vector<std::future<bool>> opened;
  std::mt19937 random{42};
  for (int i = 0; i < 42; ++i) {
    auto done = std::make_shared<std::promise<bool>>();
    opened.push_back(done->get_future());
    fx.jail->open({}, [done](auto s) { done->set_value(s.has_value()); });
    if (i % 6 != 5)
      continue;
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 60'000});
    for (auto pid : zygotes())
      ::kill(pid, SIGKILL);
  }
  for (auto& o : opened)
    CHECK(o.get());
  fx.jail.reset();
  CHECK(take_footprint().children.empty());
}

TEST_CASE("what a sandbox writes into the zygote's memory no other sandbox sees",
          "[jail][zygote]") {
  jail_fixture fx;
  auto s = fx.open();
  auto t = fx.open();
  // Bytes of the zygote's heap: what lies there, writing to it, and ways to the file behind it.
  constexpr auto prepare = R"py(
import ctypes, os, string
libc = ctypes.CDLL(None, use_errno=True)
mine = [l.split()[0] for l in open("/proc/self/maps") if "/memory (deleted)" in l]
text = string.ascii_letters
at = id(text) + text.__sizeof__() - 1 - len(text)
page = at & ~4095
any(int(m.split("-")[0], 16) <= at < int(m.split("-")[1], 16) for m in mine)
)py";
  CHECK(tagged(fx.run(*s, prepare)) == "true");
  CHECK(tagged(fx.run(*t, prepare)) == "true");
  CHECK(tagged(fx.run(*s, "ctypes.memset(at, 88, 26)\ntext"))
        == R"("XXXXXXXXXXXXXXXXXXXXXXXXXXABCDEFGHIJKLMNOPQRSTUVWXYZ")");
  CHECK(tagged(fx.run(*t, "text[:26]")) == R"("abcdefghijklmnopqrstuvwxyz")");
  constexpr auto reach = R"py(
def refused(path):
  try: os.close(os.open(path, os.O_RDWR))
  except OSError: return True
MADV_REMOVE = 9
removed = libc.madvise(ctypes.c_void_p(page), ctypes.c_size_t(4096), MADV_REMOVE)
removed != 0 and all(refused("/proc/self/map_files/" + m) for m in mine)
)py";
  CHECK(tagged(fx.run(*s, reach)) == "true");
  CHECK(
    tagged(fx.run(*fx.open(), "import string\nstring.ascii_lowercase + string.ascii_letters[:26]"))
    == R"("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz")");
  CHECK(fx.close(*s).clean());
}

TEST_CASE("a zygote that is not there is named", "[jail][zygote]") {
  jail_fixture fx{{.zygote_path = "/nonexistent/troupe-zygote"}};
  auto s = fx.try_open();
  REQUIRE(!s);
  CHECK(s.error().code == errc::unavailable);
  CHECK(s.error().detail == "cannot start /nonexistent/troupe-zygote: No such file or directory");
}

TEST_CASE("a preload that does not import fails the open and says why", "[jail][zygote]") {
  jail_options options;
  options.profiles.front().preload = {"json", "no_such_module"};
  jail_fixture fx{options};
  auto s = fx.try_open();
  REQUIRE(!s);
  CHECK(s.error().code == errc::unavailable);
  CHECK(s.error().detail.find("No module named 'no_such_module'") != std::string::npos);
}

TEST_CASE("an open that takes too long times out and leaves nothing", "[jail][zygote]") {
  jail_fixture fx;
  static_cast<void>(fx.open());
  ::kill(zygotes().at(0), SIGSTOP);
  sandbox_spec spec;
  spec.limits.open_timeout = 100ms;
  auto start = steady_clock::now();
  auto s = fx.try_open(spec);
  REQUIRE(!s);
  CHECK(s.error().code == errc::timeout);
  CHECK(steady_clock::now() - start < 5s);
  CHECK(tagged(fx.run(*fx.open(), "1")) == "1");
}
