#include "runtime/eval/data_uri.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("a data URI is known by its base64 mark", "[data_uri]") {
  CHECK(decode_data_uri("data:text/plain;charset=utf-8;base64,Zm9v") == "foo");
  CHECK(decode_data_uri("data:;base64,Zm9v") == "foo");
  CHECK(!is_data_uri("data: 1,2,3"));
  CHECK(!is_data_uri("database64,Zm9v"));
  CHECK(is_data_uri("data:x;base64,!!!"));
  CHECK(!decode_data_uri("data:x;base64,!!!"));
}
