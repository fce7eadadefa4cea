#include "runtime/eval/base64.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("base64 decodes the RFC's vectors, padded or not", "[base64]") {
  // Source: RFC 4648, section 10.
  CHECK(decode_base64("") == "");
  CHECK(decode_base64("Zg==") == "f");
  CHECK(decode_base64("Zm8=") == "fo");
  CHECK(decode_base64("Zm9v") == "foo");
  CHECK(decode_base64("Zm9vYg==") == "foob");
  CHECK(decode_base64("Zm9vYmFy") == "foobar");
  CHECK(decode_base64("Zg") == "f");
  CHECK(decode_base64("/+8=") == "\xFF\xEF");
}

TEST_CASE("what is not base64 is refused", "[base64]") {
  for (auto bad : {"Z", "Zg=", "Zg===", "Zm9v!", "Zm 9v", "=Zm9v", "Zm9vYg=x"}) {
    INFO(bad);
    CHECK(!decode_base64(bad));
  }
}

TEST_CASE("a data URI is known by its base64 mark", "[base64]") {
  CHECK(decode_data_uri("data:text/plain;charset=utf-8;base64,Zm9v") == "foo");
  CHECK(decode_data_uri("data:;base64,Zm9v") == "foo");
  CHECK(!is_data_uri("data: 1,2,3"));
  CHECK(!is_data_uri("database64,Zm9v"));
  CHECK(is_data_uri("data:x;base64,!!!"));
  CHECK(!decode_data_uri("data:x;base64,!!!"));
}
