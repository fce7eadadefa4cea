#include "runtime/core/text.hpp"
#include "runtime/core/value.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <limits>

using namespace troupe;

namespace {

json nested_lists(int levels) {
  auto x = json::array();
  for (int i = 1; i < levels; ++i)
    x = json::array({x});
  return x;
}

std::string complaint(const char* text) {
  auto checked = check_tagged(json::parse(text));
  return checked ? "" : checked.error().detail;
}

}  // namespace

TEST_CASE("every known type tag passes in its right shape", "[value]") {
  CHECK(complaint(R"({"a": [1, 2.5, null, true, "x"]})").empty());
  CHECK(
    complaint(R"({"__type__": "tuple", "data": [1, {"__type__": "set", "data": [2]}]})").empty());
  CHECK(complaint(R"({"__type__": "frozenset", "data": []})").empty());
  CHECK(complaint(R"({"__type__": "bytes", "data": "AP8="})").empty());
  CHECK(complaint(R"({"__type__": "int", "data": "-123456789012345678901234567890"})").empty());
  CHECK(complaint(R"({"__type__": "float", "data": "-inf"})").empty());
  CHECK(complaint(R"({"__type__": "complex", "real": 1, "imag": -2.5})").empty());
  CHECK(
    complaint(R"({"__type__": "complex", "real": {"__type__": "float", "data": "nan"}, "imag": 0})")
      .empty());
  CHECK(complaint(R"({"__type__": "dict", "data": [[1, "a"], ["__type__", 2]]})").empty());
  CHECK(complaint(R"({"__type__": "datetime", "data": "2026-01-02T03:04:05"})").empty());
  CHECK(complaint(R"({"__type__": "timedelta", "total_seconds": 1.5})").empty());
  CHECK(complaint(R"({"__type__": "Decimal", "data": "1.10"})").empty());
  CHECK(complaint(R"({"__type__": "ndarray", "data": [[1, 2]], "dtype": "int64"})").empty());
  CHECK(complaint(
          R"({"__type__": "dataclass", "class_name": "P", "module": "__main__", "data": {"x": 1}})")
          .empty());
}

TEST_CASE("a tag of an unknown type or another shape is corrupt, and the place is named",
          "[value]") {
  CHECK(complaint(R"({"__type__": "pickle", "data": "AA=="})") == "value: unknown type 'pickle'");
  CHECK(complaint(R"([0, {"a": {"__type__": "socket", "data": 1}}])")
        == "value[1].a: unknown type 'socket'");
  CHECK(complaint(R"({"__type__": 7})") == "value: a type tag that is no string");
  CHECK(complaint(R"({"__type__": "tuple", "data": {}})") == "value: tuple without a list");
  CHECK(complaint(R"({"__type__": "tuple", "data": [], "x": 1})")
        == "value: tuple of another shape");
  CHECK(complaint(R"({"__type__": "bytes", "data": "A=B="})")
        == "value: bytes that are not base64");
  CHECK(complaint(R"({"__type__": "int", "data": "1e5"})") == "value: an int that is no number");
  CHECK(complaint(R"({"__type__": "float", "data": "1.5"})") == "value: no such float");
  CHECK(complaint(R"({"__type__": "complex", "real": 1, "imag": "2"})")
        == "value: complex without numbers");
  CHECK(complaint(R"({"__type__": "dict", "data": [[1]]})") == "value: dict entry 0 is no pair");
  CHECK(complaint(R"({"__type__": "dict", "data": [[{"__type__": "?", "data": ""}, 1]]})")
        == "value{0}.key: unknown type '?'");
}

TEST_CASE("a complaint cuts long names between characters", "[value]") {
  std::string name = "a";
  for (int i = 0; i < 40; ++i)
    name += "\u00e9";
  for (const auto& text :
       {R"({")" + name + R"(": {"__type__": 0}})", R"({"__type__": ")" + name + R"(", "data": 1})",
        R"({"__type__": ")" + name + R"("})"}) {
    auto said = complaint(text.c_str());
    CHECK(said.find("a\u00e9") != std::string::npos);
    CHECK(said.size() < 120);
    CHECK(is_utf8(said));
  }
}

TEST_CASE("a value at the depth limit passes and one level more does not", "[value]") {
  CHECK(check_tagged(nested_lists(32), {.max_depth = 31}));
  auto deeper = check_tagged(nested_lists(33), {.max_depth = 31});
  REQUIRE(!deeper);
  CHECK(deeper.error().code == errc::corrupt);
  CHECK(deeper.error().detail.find("deeper than 31") != std::string::npos);
}

TEST_CASE("plain JSON of a tagged value keeps what JSON can say and spells out the rest",
          "[value]") {
  auto plain = [](const char* text) { return dump_json(to_plain(json::parse(text))); };
  CHECK(plain(R"({"__type__": "tuple", "data": [1, {"__type__": "set", "data": [2]}]})")
        == "[1,[2]]");
  CHECK(plain(R"({"__type__": "float", "data": "nan"})") == R"("nan")");
  CHECK(plain(R"({"__type__": "Decimal", "data": "1.10"})") == R"("1.10")");
  CHECK(plain(R"({"__type__": "complex", "real": 1, "imag": -2.5})") == "\"(1-2.5j)\"");
  CHECK(plain(R"({"__type__": "timedelta", "total_seconds": 90})") == "90");
  CHECK(plain(R"({"__type__": "dict", "data": [[1, "a"], [null, 2], [true, 3],
                 [{"__type__": "tuple", "data": [1, 2]}, 4]]})")
        == R"({"1":"a","None":2,"True":3,"[1,2]":4})");
  CHECK(
    plain(
      R"({"__type__": "dataclass", "class_name": "P", "module": "m", "data": {"x": {"__type__": "tuple", "data": []}}})")
    == R"({"x":[]})");
}

TEST_CASE("a plain object with a __type__ key is escaped and comes back the same", "[value]") {
  auto plain = json::parse(R"({"a": [{"__type__": "tuple", "data": [1]}], "b": {"c": 1}})");
  auto tagged = to_tagged(plain);
  CHECK(dump_json(tagged)
        == R"({"a":[{"__type__":"dict","data":[["__type__","tuple"],["data",[1]]]}],"b":{"c":1}})");
  CHECK(check_tagged(tagged));
  CHECK(to_plain(tagged) == plain);
}

TEST_CASE("a number that JSON cannot write is tagged", "[value]") {
  auto inf = std::numeric_limits<double>::infinity();
  CHECK(dump_json(to_tagged(json::array({inf, -inf, std::nan("")})))
        == R"([{"__type__":"float","data":"inf"},{"__type__":"float","data":"-inf"},)"
           R"({"__type__":"float","data":"nan"}])");
}
