#include "executors/frame_splitter.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("frames come out whole however the bytes came in", "[frames]") {
  auto stream = make_frame("first") + make_frame("") + make_frame(std::string(70'000, 'x'));
  for (std::size_t step : {std::size_t{1}, std::size_t{3}, std::size_t{65'536}, stream.size()}) {
    frame_splitter frames{100'000};
    std::vector<std::string> got;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      frames.feed(std::string_view{stream}.substr(at, step));
      for (auto next = frames.next(); next && *next; next = frames.next())
        got.push_back(**next);
    }
    REQUIRE(got.size() == 3);
    CHECK(got[0] == "first");
    CHECK(got[1].empty());
    CHECK(got[2].size() == 70'000);
    CHECK(frames.pending() == 0);
  }
}

TEST_CASE("a length is big-endian", "[frames]") {
  CHECK(make_frame("ab") == std::string("\0\0\0\2ab", 6));
}

TEST_CASE("a length above the limit is refused from its header alone", "[frames]") {
  frame_splitter frames{10};
  frames.feed(std::string_view{"\xff\xff\xff\xff", 4});
  auto next = frames.next();
  REQUIRE(!next);
  CHECK(next.error().code == errc::corrupt);
  CHECK(next.error().detail == "a frame of 4294967295 bytes, more than the 10 allowed");
}

TEST_CASE("a frame of just the limit passes", "[frames]") {
  frame_splitter frames{10};
  frames.feed(make_frame("0123456789"));
  auto next = frames.next();
  REQUIRE(next);
  CHECK(**next == "0123456789");
}
