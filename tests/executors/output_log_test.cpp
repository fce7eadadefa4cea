#include "executors/output_log.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("short output is kept as it is", "[output]") {
  output_log log{10};
  log.append("hello");
  log.append("world");
  CHECK(log.text() == "helloworld");
  CHECK(log.dropped() == 0);
  CHECK(log.total() == 10);
}

TEST_CASE("of long output the head and the tail are kept, whatever the pieces", "[output]") {
  std::string all;
  for (int i = 0; i < 1'000; ++i)
    all += static_cast<char>('a' + i % 26);
  for (std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{1'000}}) {
    output_log log{20};
    for (std::size_t at = 0; at < all.size(); at += step)
      log.append(std::string_view{all}.substr(at, step));
    CHECK(log.dropped() == 980);
    CHECK(log.text()
          == all.substr(0, 10) + "\n... [980 bytes cut] ...\n" + all.substr(all.size() - 10));
  }
}

TEST_CASE("a character cut in two leaves no broken UTF-8", "[output]") {
  output_log log{7};
  for (int i = 0; i < 10; ++i)
    log.append("é");
  auto text = log.text();
  CHECK(text.starts_with("éé"));
  CHECK(text.ends_with("] ...\né"));
}

TEST_CASE("bytes that are no UTF-8 are replaced", "[output]") {
  output_log log{10};
  log.append("a\xff");
  CHECK(log.text() == "a\uFFFD");
}

TEST_CASE("with nothing to show all is counted", "[output]") {
  output_log log{0};
  log.append("abc");
  CHECK(log.dropped() == 3);
  CHECK(log.total() == 3);
}
