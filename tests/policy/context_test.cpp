#include "runtime/policy/context.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("a conversation is estimated by its bytes until a server has counted it", "[context]") {
  context_gauge g{1000};
  CHECK(g.tokens(400) == 100);
  g.counted(400, 300);
  CHECK(g.tokens(400) == 300);
  CHECK(g.tokens(800) == 400);
  CHECK(g.tokens(200) == 250);
  CHECK(g.tokens(0) == 200);
  g.counted(800, 0);  // this server does not count
  CHECK(g.tokens(400) == 300);
}

TEST_CASE("it is too long from a share of the window on, and is brought well below", "[context]") {
  context_gauge g{1000};
  g.counted(4000, 700);
  CHECK(!g.too_long(4400, 0.8));
  CHECK(g.too_long(4404, 0.8));
  auto target = g.target(0.8);
  CHECK(g.tokens(target) == 600);
  CHECK(target == 3600);
  g.counted(100, 900);
  CHECK(g.target(0.8) == 0);
}

TEST_CASE("without a window nothing is too long, and images cost their own", "[context]") {
  context_gauge g;
  CHECK(!g.too_long(1u << 30, 0.5));
  g.begin(1'000'000, 1500);
  g.learn(8000);
  CHECK(g.tokens(1'000'400) == 1600);
  g.learn(0);
  CHECK(g.window() == 8000);
}

TEST_CASE("one observation may have a quarter of the window, or what is said", "[context]") {
  context_gauge known{8000};
  CHECK(observation_bytes({}, known) == 8000u);
  CHECK(observation_bytes({}, context_gauge{}) == std::nullopt);
  CHECK(observation_bytes({.observation_tokens = 10}, known) == 40u);
}

TEST_CASE("refusals name the window", "[context]") {
  // Source: the servers' own texts; see server_error_test.
  CHECK(window_in("This model's maximum context length is 8192 tokens. However, your messages "
                  "resulted in 10025 tokens.")
        == 8192u);
  CHECK(window_in("prompt is too long: 208310 tokens > 200000 maximum") == 200000u);
  CHECK(window_in("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000")
        == 200000u);
  CHECK(window_in("The input token count (1200000) exceeds the maximum number of tokens allowed "
                  "(1048576).")
        == 1048576u);
  CHECK(window_in("Prompt contains 40000 tokens, too large for model with 32,768 maximum context "
                  "length")
        == 32768u);
  CHECK(window_in("the request exceeds the available context size, try increasing it")
        == std::nullopt);
  CHECK(window_in("context length is 4 > 9") == std::nullopt);
  CHECK(window_in("") == std::nullopt);
}
