#include "config/model_name.hpp"
#include "tests/config/fake_environment.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>

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

TEST_CASE("servers and gateways are found where their own documentation says", "[model_name]") {
  for (auto [model, base_url, key] :
       {std::array{"vllm/m", "http://localhost:8000/v1", ""},
        std::array{"llamacpp/m", "http://localhost:8080/v1", ""},
        std::array{"ollama/m", "http://localhost:11434/v1", ""},
        std::array{"openrouter/a/m", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"},
        std::array{"anthropic/m", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"}}) {
    auto got = parse_model_name(named(model), environment({{key, "k"}}));
    REQUIRE(got);
    CHECK(got->base_url == base_url);
    CHECK(got->key_variable == key);
  }
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

TEST_CASE("Anthropic's variable is the URL that its SDKs take, without the version",
          "[model_name]") {
  auto url = [](std::string text) {
    return parse_model_name(named("anthropic/claude"), environment({{"ANTHROPIC_BASE_URL", text}}))
      ->base_url;
  };
  CHECK(url("https://proxy.example/") == "https://proxy.example/v1");
  CHECK(url("https://proxy.example/v1") == "https://proxy.example/v1");
  auto own = parse_model_name(named("anthropic/claude"), environment({{"ANTHROPIC_API_KEY", "k"}}));
  REQUIRE(own);
  CHECK(own->base_url == "https://api.anthropic.com/v1");
  CHECK(own->api == "messages");
  CHECK(refusal(named("anthropic/claude")).find("set ANTHROPIC_API_KEY") != std::string::npos);
}

TEST_CASE("Azure has no address of its own, and a version moves it", "[model_name]") {
  CHECK(refusal(named("azure/d")).find("set AZURE_OPENAI_ENDPOINT") != std::string::npos);
  std::map<std::string, std::string> variables{
    {"AZURE_OPENAI_ENDPOINT", "https://r.openai.azure.com/"}};
  CHECK(refusal(named("azure/d"), environment(variables)).find("set AZURE_OPENAI_API_KEY")
        != std::string::npos);
  variables["AZURE_OPENAI_API_KEY"] = "k";
  auto v1 = parse_model_name(named("azure/d"), environment(variables));
  REQUIRE(v1);
  CHECK(v1->base_url == "https://r.openai.azure.com/openai/v1");
  CHECK(v1->api_version.empty());
  variables["OPENAI_API_VERSION"] = "2024-10-21";
  auto classic = parse_model_name(named("azure/d"), environment(variables));
  REQUIRE(classic);
  CHECK(classic->base_url == "https://r.openai.azure.com");
  CHECK(classic->api_version == "2024-10-21");
  variables["AZURE_OPENAI_ENDPOINT"] = "https://r.openai.azure.com/openai/v1";
  CHECK(parse_model_name(named("azure/d"), environment(variables))->base_url
        == "https://r.openai.azure.com");
  CHECK(parse_model_name(named("openai/x", "http://h/v1"), environment(variables))
          ->api_version.empty());
}

TEST_CASE("Gemini is reached at its OpenAI endpoint with either key variable", "[model_name]") {
  auto got =
    parse_model_name(named("gemini/gemini-2.5-pro"), environment({{"GEMINI_API_KEY", "k"}}));
  REQUIRE(got);
  CHECK(got->base_url == "https://generativelanguage.googleapis.com/v1beta/openai");
  CHECK(got->key_variable == "GEMINI_API_KEY");
  CHECK(refusal(named("gemini/x")).find("set GOOGLE_API_KEY or GEMINI_API_KEY")
        != std::string::npos);
}

TEST_CASE("any address may speak any of the wire formats", "[model_name]") {
  auto m = named("custom/x", "http://h/v1");
  CHECK(parse_model_name(m, environment({}))->api == "chat");
  m.api = "messages";
  m.api_version = "2026-10-21";
  auto got = parse_model_name(m, environment({}));
  CHECK(got->api == "messages");
  CHECK(got->api_version == "2026-10-21");
  CHECK(refusal(named("custom/x", "http://h/v1/messages")).find("leave /messages out")
        != std::string::npos);
}

TEST_CASE("headers are the account's and the user's", "[model_name]") {
  auto m = named("openai/x", "http://h/v1");
  m.headers = {"X-HF-Bill-To = my org", "a=b=c"};
  auto got =
    parse_model_name(m, environment({{"OPENAI_ORG_ID", "org-1"}, {"OPENAI_PROJECT_ID", "proj-1"}}));
  REQUIRE(got);
  using pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(got->headers
        == pairs{{"openai-organization", "org-1"},
                 {"openai-project", "proj-1"},
                 {"X-HF-Bill-To", "my org"},
                 {"a", "b=c"}});
  m.headers = {"no value"};
  CHECK(refusal(m).find("'no value' is not name=value") != std::string::npos);
}
