#include "runtime/core/base64.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("base64 is the RFC's, both ways", "[base64]") {
  // Source: RFC 4648, section 10; the last one has all kinds of digits.
  struct vector {
    std::string bytes;
    const char* text;
  };
  for (const auto& [bytes, text] :
       {vector{"", ""}, vector{"f", "Zg=="}, vector{"fo", "Zm8="}, vector{"foo", "Zm9v"},
        vector{"foob", "Zm9vYg=="}, vector{"fooba", "Zm9vYmE="}, vector{"foobar", "Zm9vYmFy"},
        vector{std::string("\0\xff", 2), "AP8="}, vector{"\xFF\xEF", "/+8="}}) {
    CHECK(to_base64(bytes) == text);
    CHECK(decode_base64(text) == bytes);
  }
  CHECK(decode_base64("Zg") == "f");
}

TEST_CASE("what is not base64 is refused", "[base64]") {
  for (auto bad : {"Z", "Zg=", "Zg===", "Zm9v!", "Zm 9v", "=Zm9v", "Zm9vYg=x", "Zm9\xff"}) {
    INFO(bad);
    CHECK(!decode_base64(bad));
  }
}
