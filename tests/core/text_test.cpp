#include "runtime/core/text.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("long text keeps its head and tail and says what was cut", "[text]") {
  CHECK(cut_middle("short", 10) == "short");
  auto cut = cut_middle(std::string(50, 'a') + std::string(50, 'b'), 20);
  CHECK(cut == "aaaaaaaaaa\n... [80 bytes cut] ...\nbbbbbbbbbb");
}

TEST_CASE("cutting never splits a character", "[text]") {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += "\xE2\x82\xAC";
  for (std::size_t n = 0; n < 20; ++n) {
    CHECK(is_utf8(cut_middle(text, n)));
    CHECK(is_utf8(utf8_prefix(text, n)));
  }
}

TEST_CASE("overlong forms, surrogates and stray bytes are not UTF-8", "[text]") {
  CHECK(is_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
  for (auto bad : {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80", "\xC3"})
    CHECK(!is_utf8(bad));
}

TEST_CASE("the nearest name is suggested only when it is near", "[text]") {
  std::vector<std::string_view> names{"max_concurrency", "model", "epochs"};
  CHECK(nearest("max_concurency", names) == "max_concurrency");
  CHECK(nearest("modle", names).empty() == false);
  CHECK(nearest("zzz", names).empty());
}
