#include "config/model_name.hpp"
#include "tests/config/fake_environment.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using test::environment;

namespace {

model_options named(std::string model, std::string base_url = "", std::string key_env = "") {
  model_options m;
  m.model = std::move(model);
  m.base_url = std::move(base_url);
  m.api_key_env = std::move(key_env);
  return m;
}

std::string refusal(const model_options& m, const env_lookup& env = environment({})) {
  auto r = parse_model_name(m, env);
  return r ? "accepted" : r.error().detail;
}

}  // namespace

TEST_CASE("a provider's name gives its address and the variable of its key", "[model_name]") {
  auto got = parse_model_name(named("openai/gpt-4.1"), environment({{"OPENAI_API_KEY", "k"}}));
  REQUIRE(got);
  CHECK(*got == model_target{"openai", "gpt-4.1", "https://api.openai.com/v1", "OPENAI_API_KEY"});
}

TEST_CASE("only the first slash ends the provider", "[model_name]") {
  auto got =
    parse_model_name(named("hf/meta-llama/Llama-3.3-70B:novita"), environment({{"HF_TOKEN", "t"}}));
  REQUIRE(got);
  CHECK(got->model == "meta-llama/Llama-3.3-70B:novita");
  CHECK(got->base_url == "https://router.huggingface.co/v1");
}

TEST_CASE("no key for a provider names the variable", "[model_name]") {
  auto r = parse_model_name(named("openai/x"), environment({{"OPENAI_API_KEY", "  "}}));
  REQUIRE(!r);
  CHECK(r.error().code == errc::denied);
  CHECK(r.error().detail
        == "no key for openai: set OPENAI_API_KEY, or name another variable with --api-key-env");
  CHECK(refusal(named("ollama/x", "", "NOPE"))
        == "no key for ollama: the variable NOPE (api_key_env) is not set");
}

TEST_CASE("a server of one's own needs no key, and uses the one that is set", "[model_name]") {
  CHECK(parse_model_name(named("openai/x", "http://127.0.0.1:9/v1/"), environment({}))->base_url
        == "http://127.0.0.1:9/v1");
  auto env = environment({{"OPENAI_BASE_URL", "http://localhost:1/v1"}, {"OPENAI_API_KEY", "k"}});
  CHECK(parse_model_name(named("openai/x"), env)->key_variable == "OPENAI_API_KEY");
  CHECK(parse_model_name(named("openai/x"), env)->base_url == "http://localhost:1/v1");
  CHECK(refusal(named("openai/x", "https://api.openai.com/v1")).starts_with("no key for openai"));
}

TEST_CASE("an unknown provider gets the nearest name", "[model_name]") {
  CHECK(refusal(named("opnai/x")).find("(did you mean 'openai'?)") != std::string::npos);
  CHECK(refusal(named("gpt-4.1")).find("openai/gpt-4.1") != std::string::npos);
  CHECK(refusal(named("openai/")).find("names no model") != std::string::npos);
  CHECK(refusal(named("")).starts_with("no model given"));
  CHECK(refusal(named("anthropic/claude")).find("later version") != std::string::npos);
}

TEST_CASE("custom needs a base URL, and a base URL has a known form", "[model_name]") {
  CHECK(refusal(named("custom/x")).find("--base-url") != std::string::npos);
  CHECK(refusal(named("custom/x", "localhost:80")).find("is not a base URL") != std::string::npos);
  CHECK(
    refusal(named("custom/x", "http://h/v1/chat/completions")).find("leave /chat/completions out")
    != std::string::npos);
  CHECK(parse_model_name(named("custom/x", "unix:///run/m.sock"), environment({})));
}

TEST_CASE("mock names a script and needs nothing else", "[model_name]") {
  CHECK(*parse_model_name(named("mock/a/b.json"), environment({}))
        == model_target{"mock", "a/b.json", "", ""});
  CHECK(refusal(named("mock/")).find("script") != std::string::npos);
}

TEST_CASE("Ollama's own host variable is understood in its forms", "[model_name]") {
  auto url = [](std::string host) {
    return parse_model_name(named("ollama/q"), environment({{"OLLAMA_HOST", host}}))->base_url;
  };
  CHECK(url("0.0.0.0") == "http://127.0.0.1:11434/v1");
  CHECK(url("box:9000") == "http://box:9000/v1");
  CHECK(url("https://box.example/") == "https://box.example/v1");
  CHECK(url("http://[::1]") == "http://[::1]:11434/v1");
}
