#include "runtime/core/json.hpp"
#include "runtime/core/random.hpp"
#include "runtime/model/shortened_json.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

/// Every string of it, keys too, as the whole has them.
json restored(const shortened_json& from, const json& value) {
  if (value.is_string())
    return from.restored(value.get<std::string>());
  if (value.is_array()) {
    auto out = json::array();
    for (auto& x : value)
      out.push_back(restored(from, x));
    return out;
  }
  if (!value.is_object())
    return value;
  auto out = json::object();
  for (auto& [key, x] : value.items())
    out[from.restored(key)] = restored(from, x);
  return out;
}

void check_whole(const std::string& text) {
  CAPTURE(text);
  shortened_json s{text};
  auto whole = json::parse(text, nullptr, false);
  auto parsed = json::parse(s.text(), nullptr, false);
  REQUIRE(parsed.is_discarded() == whole.is_discarded());
  if (!whole.is_discarded())
    CHECK(restored(s, parsed) == whole);
}

std::string in_quotes(const std::string& inside) {
  return "\"" + inside + "\"";
}

}  // namespace

TEST_CASE("long strings are left out and come back", "[shortened_json]") {
  const std::string a(300, 'a');
  auto b = std::string(300, 'b') + R"(\n\"\\)" + "\xC3\xBC";
  auto text = R"({"k":[)" + in_quotes(a) + "," + in_quotes(b) + R"(],"short":"x"})";
  shortened_json s{text};
  CHECK(s.text().size() < 100);
  check_whole(text);
  auto parsed = json::parse(s.text());
  auto both = parsed["k"][0].get<std::string>() + "\n" + parsed["k"][1].get<std::string>();
  CHECK(s.restored(both) == a + "\n" + std::string(300, 'b') + "\n\"\\\xC3\xBC");
}

TEST_CASE("a text without long strings is its own", "[shortened_json]") {
  const std::string text = R"({"a":"b"})";
  CHECK(shortened_json{text}.text().data() == text.data());
}

TEST_CASE("a string that looks like the stand-in of another is not taken for it",
          "[shortened_json]") {
  check_whole("[" + in_quotes(std::string(300, 'a')) + R"(,"\u00010\u0001"])");
  check_whole(R"(["\u00010\u0001",)" + in_quotes(std::string(300, 'a')) + "]");
}

TEST_CASE("what is malformed is so without its long strings too", "[shortened_json]") {
  const std::string fill(300, 'a');
  for (auto inside :
       {fill + "\x01", fill + "\\q", fill + "\\", fill + "\xFF", fill + "\\ud800", fill + "\\u12"})
    check_whole("[" + in_quotes(inside) + "]");
  check_whole("[" + in_quotes(fill));
  check_whole("[" + in_quotes(fill) + in_quotes(fill) + "]");
  check_whole(in_quotes(fill) + "x");
  check_whole("\"" + fill);
  check_whole("");
}

TEST_CASE("any text says the same without its long strings", "[shortened_json]") {
  rng random{7};
  const std::string pieces[] = {"\"",
                                "\\",
                                "\\\"",
                                "\\n",
                                "[",
                                "]",
                                "{",
                                "}",
                                ":",
                                ",",
                                "\\u0001",
                                "\\u00e9",
                                "\xC3\xA9",
                                "\x01",
                                "1",
                                std::string(250, 'x'),
                                std::string(9, 'y'),
                                "\"" + std::string(256, 'z') + "\""};
  for (int i = 0; i < 20'000; ++i) {
    std::string text = i % 2 == 0 ? "[\"" : "";
    for (auto n = random.next() % 12; n > 0; --n)
      text += pieces[random.next() % std::size(pieces)];
    check_whole(text + (i % 2 == 0 ? "\"]" : ""));
  }
}
