#include "config/price_file.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

std::string why(std::string_view text) {
  auto read = parse_prices(text, "p.yaml");
  REQUIRE(!read);
  CHECK(read.error().detail.find('\n') == std::string::npos);
  return read.error().detail;
}

}  // namespace

TEST_CASE("the shipped price list can be read, and each price has its date", "[price_file]") {
  auto list = read_prices("");
  REQUIRE(list);
  CHECK(list->currency == "USD");
  CHECK(list->models.size() >= 5);
  for (auto& [name, one] : list->models) {
    CAPTURE(name);
    CHECK(one.as_of.size() == 10);
    CHECK(one.input > 0);
    CHECK(one.output > one.input);
  }
}

TEST_CASE("a price list is read", "[price_file]") {
  auto list = parse_prices("currency: EUR\n"
                           "models:\n"
                           "  vllm/qwen3:\n"
                           "    input: 0.1\n"
                           "    output: 1e-1\n"
                           "    cached_input: 0\n"
                           "    as_of: 2026-01-01\n",
                           "p.yaml");
  REQUIRE(list);
  CHECK(list->currency == "EUR");
  auto* p = list->find("vllm/qwen3");
  REQUIRE(p);
  CHECK(p->input == 0.1);
  CHECK(p->output == 0.1);
  CHECK(p->cached_input == 0.0);
  CHECK(!p->cache_write);
  CHECK(p->as_of == "2026-01-01");
}

TEST_CASE("a typo in a price list is one line that says where and what to do", "[price_file]") {
  CHECK(why("modells: {}\n") == "p.yaml, line 1: unknown key 'modells' (did you mean 'models'?)");
  CHECK(why("models:\n  a/b:\n    inptu: 1\n    output: 2\n")
        == "p.yaml, line 3: a/b: unknown key 'inptu' (did you mean 'input'?)");
  CHECK(why("models:\n  a/b:\n    input: 1\n")
        == "p.yaml, line 2: a/b: 'output' is missing, in money per million tokens");
  CHECK(why("models:\n  a/b:\n    input: 1,5\n    output: 2\n")
        == "p.yaml, line 3: a/b: input: '1,5' is not an amount of money per million tokens, e.g. "
           "2.50");
  CHECK(why("models:\n  a/b: {input: -1, output: 2}\n").find("'-1' is not an amount")
        != std::string::npos);
  CHECK(why("models:\n  gpt: {input: 1, output: 2}\n")
        == "p.yaml, line 2: 'gpt' is not provider/model, e.g. openai/gpt-4.1");
  CHECK(why("models:\n  a/b: {input: 1, output: 2, input: 3}\n").find("stands twice")
        != std::string::npos);
  CHECK(why("models:\n  a/b: 3\n").find("expected input and output") != std::string::npos);
  CHECK(why("models: [\n").starts_with("p.yaml, line "));
  CHECK(why("7").starts_with("p.yaml, line 1: expected"));
}

TEST_CASE("a model without a price is named, with what to do", "[price_file]") {
  auto list = read_prices("");
  REQUIRE(list);
  CHECK(price_of(*list, "openai/gpt-4.1", ""));
  auto none = price_of(*list, "openai/gpt-4.l", "");
  REQUIRE(!none);
  CHECK(none.error().detail.find("'openai/gpt-4.l'") != std::string::npos);
  CHECK(none.error().detail.find("did you mean 'openai/gpt-4.1'?") != std::string::npos);
  CHECK(none.error().detail.find("--prices") != std::string::npos);
}
