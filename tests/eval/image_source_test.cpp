#include "runtime/eval/image_source.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::string_view_literals;

TEST_CASE("an image's kind is told by its first bytes", "[image]") {
  // Source: the signatures of W3C PNG 5.2, ITU T.81 B.1, GIF89a 17, RFC 9649 2.3.
  CHECK(image_url_of("\x89PNG\r\n\x1A\n"sv) == "data:image/png;base64,iVBORw0KGgo=");
  CHECK(image_url_of("\xFF\xD8\xFF\xE0"sv) == "data:image/jpeg;base64,/9j/4A==");
  CHECK(image_url_of("GIF89a"sv) == "data:image/gif;base64,R0lGODlh");
  CHECK(image_url_of("RIFF\x04\0\0\0WEBPVP8 "sv).value().starts_with("data:image/webp;base64,"));
  for (auto other : {"RIFF\x04\0\0\0WAVE"sv, "<svg/>"sv, ""sv, "RIFF"sv}) {
    auto refused = image_url_of(other);
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::invalid_argument);
  }
}

TEST_CASE("URLs that providers take go as they are", "[image]") {
  CHECK(image_from("https://e.org/a.png") == "https://e.org/a.png");
  CHECK(image_from("data:image/png;base64,AA==") == "data:image/png;base64,AA==");
  CHECK(!is_image_url("data:text/plain;base64,AA=="));
  CHECK(!is_image_url("http://e.org/a.png"));
  CHECK(!is_image_url("data:image/png,raw"));
}

TEST_CASE("a file that is no image is named", "[image]") {
  auto missing = image_from("/nowhere/a.png");
  REQUIRE(!missing);
  CHECK(missing.error().code == errc::not_found);
  CHECK(missing.error().detail.find("/nowhere/a.png") != std::string::npos);
  auto other = image_from("/proc/version");
  REQUIRE(!other);
  CHECK(other.error().detail
        == "'/proc/version' is no image that models take; they take PNG, JPEG, "
           "GIF and WebP");
}
