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
