#include "actors/reply_shelf.hpp"

#include <catch2/catch_test_macros.hpp>

#include <filesystem>

#include <unistd.h>

using namespace troupe;

namespace {

struct shelf_fixture {
  shelf_fixture() {
    auto pattern = (std::filesystem::temp_directory_path() / "troupe-shelf-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
  }
  ~shelf_fixture() { std::filesystem::remove_all(folder); }

  [[nodiscard]] std::unique_ptr<reply_shelf> cache() const {
    auto store = reply_cache::open(folder + "/replies.db");
    REQUIRE(store);
    return make_cache_shelf(*std::move(store), cache_use::on, std::chrono::seconds{0});
  }

  std::string folder;
  request_identity request{"https://api.example/v1", "/chat/completions", R"({"model":"asked"})"};
};

model_reply saying(std::string text, std::string model) {
  model_reply r;
  r.text = std::move(text);
  r.model = std::move(model);
  return r;
}

model_reply by_fallback() {
  auto r = saying("4", "other");
  r.substitute = true;
  return r;
}

}  // namespace

TEST_CASE("a fallback's reply is not found again as that of the model asked for", "[reply_shelf]") {
  shelf_fixture fx;
  auto shelf = fx.cache();
  shelf->keep(fx.request, 0, by_fallback());
  CHECK_FALSE(shelf->find(fx.request, 0));
  shelf->keep(fx.request, 0, saying("four", "asked"));
  shelf->keep(fx.request, 0, by_fallback());
  auto found = shelf->find(fx.request, 0);
  REQUIRE(found);
  REQUIRE(*found);
  CHECK((*found)->text == "four");
}

TEST_CASE("a recording holds a fallback's reply, under that model's name", "[reply_shelf]") {
  shelf_fixture fx;
  auto path = fx.folder + "/tape.jsonl";
  {
    auto recording = make_recording_shelf(path, {});
    REQUIRE(recording);
    (*recording)->keep(fx.request, 0, by_fallback());
    (*recording)->flush();
  }
  auto tape = make_playing_shelf(path, cassette_match::exact, {});
  REQUIRE(tape);
  auto played = (*tape)->find(fx.request, 0);
  REQUIRE(played);
  REQUIRE(*played);
  CHECK((*played)->model == "other");
}
