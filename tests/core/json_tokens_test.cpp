#include "runtime/core/json.hpp"
#include "runtime/core/json_tokens.hpp"
#include "runtime/core/random.hpp"

#include <catch2/catch_test_macros.hpp>

#include <iterator>
#include <optional>
#include <string>
#include <vector>

using namespace troupe;

namespace {

using token = json_tokens::token;

/// Builds the value of one whole text from its tokens, numbers as doubles; nothing if it is bad.
class builder {
public:
  explicit builder(std::string_view text) : tokens_{text} {}

  std::optional<json> whole() {
    auto out = value(tokens_.next());
    if (!out || tokens_.next() != token::end)
      return std::nullopt;
    return out;
  }

private:
  std::optional<json> value(token t) {
    switch (t) {
    case token::object:
      return object();
    case token::array:
      return array();
    case token::string:
      return json(std::string{tokens_.text()});
    case token::number:
      return json(tokens_.number());
    case token::boolean:
      return json(true);
    case token::null:
      return json(nullptr);
    default:
      return std::nullopt;
    }
  }

  std::optional<json> object() {
    auto out = json::object();
    for (auto t = tokens_.next(); t != token::object_end; t = tokens_.next()) {
      if (t != token::key)
        return std::nullopt;
      std::string name{tokens_.text()};
      auto v = value(tokens_.next());
      if (!v)
        return std::nullopt;
      out[name] = std::move(*v);
    }
    return out;
  }

  std::optional<json> array() {
    auto out = json::array();
    for (auto t = tokens_.next(); t != token::array_end; t = tokens_.next()) {
      auto v = value(t);
      if (!v)
        return std::nullopt;
      out.push_back(std::move(*v));
    }
    return out;
  }

  json_tokens tokens_;
};

/// The value as tokens tell it: numbers are doubles, and both truths are one.
json as_told(const json& from) {
  if (from.is_number())
    return from.get<double>();
  if (from.is_boolean())
    return true;
  if (!from.is_structured())
    return from;
  auto out = from;
  for (auto& [key, x] : out.items())
    x = as_told(x);
  return out;
}

/// The parser that everybody uses is the judge.
void check_same(const std::string& text) {
  CAPTURE(text);
  auto judged = json::parse(text, nullptr, false);
  auto read = builder{text}.whole();
  REQUIRE(read.has_value() == !judged.is_discarded());
  if (read)
    CHECK(*read == as_told(judged));
}

}  // namespace

TEST_CASE("tokens tell what stands in a text", "[json_tokens]") {
  json_tokens t{R"( {"a" : [1, "b\n", null, true, -2.5e1], "": {}} )"};
  CHECK(t.next() == token::object);
  CHECK(t.next() == token::key);
  CHECK(t.text() == "a");
  CHECK(t.next() == token::array);
  CHECK(t.next() == token::number);
  CHECK(t.number() == 1);
  CHECK(t.next() == token::string);
  CHECK(t.text() == "b\n");
  CHECK(t.next() == token::null);
  CHECK(t.next() == token::boolean);
  CHECK(t.next() == token::number);
  CHECK(t.number() == -25);
  CHECK(t.next() == token::array_end);
  CHECK(t.next() == token::key);
  CHECK(t.text().empty());
  CHECK(t.next() == token::object);
  CHECK(t.next() == token::object_end);
  CHECK(t.next() == token::object_end);
  CHECK(t.next() == token::end);
}

TEST_CASE("what no text of JSON is, is bad", "[json_tokens]") {
  for (auto* text : {"",         " ",        "{",          "}",
                     "[",        "]",        "[1",         "[1,",
                     "[1,]",     "[,1]",     "[1 2]",      "[1}",
                     "{\"a\"}",  "{\"a\":}", "{\"a\":1,}", "{\"a\":1 \"b\":2}",
                     "{a:1}",    "{1:2}",    "{\"a\":1]",  "1 2",
                     "1,",       "tru",      "nul",        "True",
                     "truex",    "01",       "+1",         "-",
                     "1.",       ".5",       "1e",         "1e400",
                     "--1",      "0x1",      "\"",         "\"a",
                     "\"\\\"",   "\"\\q\"",  "\"\\u12\"",  "\"\\ud800\"",
                     "\"\xFF\"", "\"\xC3\"", "\"\n\"",     "'a'",
                     "//",       "[1]]",     "{}{}",       "NaN",
                     "Infinity"})
    check_same(text);
  check_same(std::string("[1\0]", 4));
  check_same(std::string("\0", 1));
}

TEST_CASE("numbers and strings are those of the parser", "[json_tokens]") {
  for (auto* text : {"0",
                     "-0",
                     "7",
                     "999999999999999",
                     "9999999999999999",
                     "18446744073709551615",
                     "18446744073709551616",
                     "-9223372036854775808",
                     "1.5",
                     "1e3",
                     "1E+3",
                     "5e-324",
                     "0.1",
                     "00",
                     "0123",
                     "\"\"",
                     "\"\\u00e9\\ud83d\\ude00\"",
                     "\"\\\\\\\"\"",
                     "\"\xC3\xA9\"",
                     "\"\xF0\x9F\x98\x80 and \\n\"",
                     "\"\\u0000\""})
    check_same(text);
  for (std::size_t n : {62, 63, 64, 65, 127, 128, 129, 1000})
    for (auto* end : {"\"", "\\\"\"", "\xC3\xA9\"", "\x1F\"", ""})
      check_same("\"" + std::string(n, 'x') + end);
}

TEST_CASE("depth has the same bound as everywhere", "[json_tokens]") {
  auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  CHECK(builder{nested(json_tokens::max_depth)}.whole());
  CHECK(!builder{nested(json_tokens::max_depth + 1)}.whole());
  CHECK(json_tokens::max_depth == json_limits{}.max_depth);
}

TEST_CASE("any text reads as the parser reads it", "[json_tokens]") {
  rng random{11};
  const std::string pieces[] = {"\"",      "\\",       "\"a\"",
                                "\"b\":",  "[",        "]",
                                "{",       "}",        ":",
                                ",",       " ",        "null",
                                "true",    "false",    "1",
                                "-2.5",    "e3",       "0",
                                "\n",      "\\u00e9",  "\xC3\xA9",
                                "\x01",    "{}",       "[]",
                                "\"\\n\"", "\"k\":1,", std::string(70, 'z')};
  std::size_t good = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string text = i % 3 == 0 ? "{\"a\":[" : i % 3 == 1 ? "[" : "";
    for (auto n = random.next() % 8; n > 0; --n)
      text += pieces[random.next() % std::size(pieces)];
    text += i % 3 == 0 ? "]}" : i % 3 == 1 ? "]" : "";
    check_same(text);
    good += builder{text}.whole() ? 1 : 0;
  }
  CHECK(good > 1'000);
}
