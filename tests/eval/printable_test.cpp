#include "runtime/core/text.hpp"
#include "runtime/eval/printable.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("escape sequences go as a whole, text stays", "[printable]") {
  CHECK(printable("a\x1B[31mred\x1B[0mb") == "aredb");
  CHECK(printable("a\x1B]0;title\ab") == "ab");
  CHECK(printable("a\x1B]52;c;ZXZpbA==\x1B\\b") == "ab");
  CHECK(printable("a\x1BPq...\x1B\\b") == "ab");
  CHECK(printable("a\x1B(Bb") == "ab");
  CHECK(printable("a\x1B"
                  "cb")
        == "ab");
  CHECK(printable("a\x1B[?25hb") == "ab");
  CHECK(printable("end\x1B") == "end");
  CHECK(printable("end\x1B[3") == "end");
}

TEST_CASE("an unfinished sequence takes no more than its line", "[printable]") {
  CHECK(printable("\x1B]0;never closed\nnext") == "\nnext");
  CHECK(printable("\x1B[\nnext") == "\nnext");
}

TEST_CASE("controls and bidirectional overrides are dropped, newline, tab and letters kept",
          "[printable]") {
  CHECK(printable(std::string_view("a\0b\x08\r\n\tc\x7F", 9)) == "ab\n\tc");
  CHECK(printable("a\xC2\x9B"
                  "31mb")
        == "a31mb");
  CHECK(printable("a\xE2\x80\xAE"
                  "b\xE2\x81\xA6")
        == "ab");
  CHECK(printable("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80")
        == "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(printable("a\xFF") == "a\xEF\xBF\xBD");
}

TEST_CASE("no escape survives, whatever stands around it", "[printable]") {
  std::string all;
  for (int c = 0; c < 256; ++c)
    all += std::string{"\x1B"} + static_cast<char>(c) + "x\x1B[" + static_cast<char>(c) + "\x1B";
  auto out = printable(all);
  CHECK(out.find('\x1B') == std::string::npos);
  CHECK(is_utf8(out));
}

TEST_CASE("one line is one line, cut with dots", "[printable]") {
  CHECK(printable_line("a\nb\tc") == "a b c");
  CHECK(printable_line("abcdef", 3) == "abc...");
  CHECK(printable_line(std::string(10'000, 'x'), 5) == "xxxxx...");
  CHECK(printable_line("abc", 3) == "abc");
}
