#include "config/model_name.hpp"

#include "runtime/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace troupe {
namespace {

std::vector<std::string_view> provider_names() {
  std::vector<std::string_view> names;
  for (const auto& p : providers())
    names.push_back(p.name);
  return names;
}

result<const provider_spec*> find_provider(const std::string& full) {
  auto slash = full.find('/');
  auto names = provider_names();
  if (slash == std::string::npos)
    return fail(errc::invalid_argument,
                fmt::format("model '{}' names no provider: write provider/model, e.g. openai/{}; "
                            "providers are {}",
                            full, full, fmt::join(names, ", ")));
  auto name = std::string_view{full}.substr(0, slash);
  for (const auto& p : providers())
    if (p.name == name)
      return &p;
  return fail(errc::invalid_argument,
              fmt::format("model '{}': unknown provider '{}'{}; providers are {}; any other "
                          "OpenAI-compatible server is custom/{} with --base-url",
                          full, name, did_you_mean(name, names), fmt::join(names, ", "), full));
}

std::optional<std::string> set_in(const env_lookup& env, std::string_view name) {
  auto text = env ? env(std::string{name}) : std::nullopt;
  return text && !trim(*text).empty() ? std::optional{std::string{trim(*text)}} : std::nullopt;
}

/// Ollama's own variable is "host", "host:port" or a URL, and may name the address to listen on.
std::string from_ollama_host(std::string host) {
  if (host.find("://") == std::string::npos)
    host = "http://" + host;
  auto begin = host.find("://") + 3;
  if (auto all = host.find("0.0.0.0", begin); all == begin)
    host.replace(begin, 7, "127.0.0.1");
  while (host.ends_with('/'))
    host.pop_back();
  auto last = host.find(']', begin) == std::string::npos ? begin : host.find(']', begin);
  if (host.starts_with("http://") && host.find(':', last) == std::string::npos
      && host.find('/', begin) == std::string::npos)
    host += ":11434";
  return host.ends_with("/v1") ? host : host + "/v1";
}

/// Anthropic's own SDKs add the version's path to the variable's URL.
std::string from_anthropic_url(std::string base) {
  while (base.ends_with('/'))
    base.pop_back();
  return base.ends_with("/v1") ? base : base + "/v1";
}

std::string from_variable(std::string_view name, std::string value) {
  if (name == "OLLAMA_HOST")
    return from_ollama_host(std::move(value));
  return name == "ANTHROPIC_BASE_URL" ? from_anthropic_url(std::move(value)) : value;
}

struct sourced_url {
  std::string text;
  std::string where;
};

sourced_url choose_url(const provider_spec& p, const model_options& options,
                       const env_lookup& env) {
  if (!options.base_url.empty())
    return {options.base_url, "base_url"};
  for (auto name : p.url_variables)
    if (auto text = set_in(env, name))
      return {from_variable(name, *text), std::string{name}};
  return {std::string{p.base_url}, std::string{p.name}};
}

result<std::string> check_url(const sourced_url& url) {
  auto text = url.text;
  while (text.ends_with('/'))
    text.pop_back();
  constexpr std::array<std::string_view, 3> schemes{"http://", "https://", "unix://"};
  auto known = std::any_of(schemes.begin(), schemes.end(), [&](std::string_view scheme) {
    return text.starts_with(scheme) && text.size() > scheme.size();
  });
  if (!known)
    return fail(errc::invalid_argument,
                fmt::format("{}: '{}' is not a base URL such as http://localhost:8000/v1",
                            url.where, url.text));
  for (std::string_view path : {"/chat/completions", "/responses", "/messages"})
    if (text.ends_with(path))
      return fail(errc::invalid_argument,
                  fmt::format("{}: leave {} out of '{}'", url.where, path, url.text));
  return text;
}

result<std::string> choose_key(const provider_spec& p, const model_options& options,
                               const env_lookup& env, bool own_address) {
  if (!options.api_key_env.empty()) {
    if (set_in(env, options.api_key_env))
      return options.api_key_env;
    return fail(errc::denied, fmt::format("no key for {}: the variable {} (api_key_env) is not set",
                                          p.name, options.api_key_env));
  }
  for (auto name : p.key_variables)
    if (set_in(env, name))
      return std::string{name};
  if (p.needs_key && own_address)
    return fail(errc::denied,
                fmt::format("no key for {}: set {}, or name another variable with --api-key-env",
                            p.name, fmt::join(p.key_variables, " or ")));
  return std::string{};
}

/// Azure's versioned paths begin at the resource; its API without versions is below /openai/v1.
std::string azure_url(std::string base, bool versioned) {
  constexpr std::string_view v1 = "/openai/v1";
  auto has_v1 = base.ends_with(v1);
  if (versioned && has_v1)
    base.erase(base.size() - v1.size());
  return versioned || has_v1 ? base : base + std::string{v1};
}

result<std::string> target_url(const provider_spec& p, const model_options& options,
                               const env_lookup& env, bool versioned) {
  auto chosen = choose_url(p, options, env);
  if (chosen.text.empty())
    return fail(errc::invalid_argument,
                p.url_variables.empty()
                  ? fmt::format("model '{}' needs --base-url, e.g. --base-url "
                                "http://localhost:8000/v1",
                                options.model)
                  : fmt::format("model '{}' needs an address: set {}, or give --base-url",
                                options.model, fmt::join(p.url_variables, " or ")));
  auto url = check_url(chosen);
  return url && p.name == "azure" ? azure_url(*url, versioned) : url;
}

std::string target_version(const provider_spec& p, const model_options& options,
                           const env_lookup& env) {
  if (options.api_version.empty() && p.name == "azure")
    return set_in(env, "OPENAI_API_VERSION").value_or("");
  return options.api_version;
}

using headers = std::vector<std::pair<std::string, std::string>>;

/// What an account's calls are counted under, as OpenAI's own SDKs send it.
void add_account(headers& out, const env_lookup& env) {
  if (auto organisation = set_in(env, "OPENAI_ORG_ID"))
    out.emplace_back("openai-organization", *organisation);
  if (auto project = set_in(env, "OPENAI_PROJECT_ID"))
    out.emplace_back("openai-project", *project);
}

result<headers> target_headers(const provider_spec& p, const model_options& options,
                               const env_lookup& env) {
  headers out;
  if (p.name == "openai")
    add_account(out, env);
  for (auto& given : options.headers) {
    auto equals = given.find('=');
    auto name = trim(std::string_view{given}.substr(0, equals));
    if (equals == std::string::npos || name.empty())
      return fail(errc::invalid_argument,
                  fmt::format("header: '{}' is not name=value, e.g. X-Title=troupe", given));
    out.emplace_back(name, trim(std::string_view{given}.substr(equals + 1)));
  }
  return out;
}

}  // namespace

const std::vector<provider_spec>& providers() {
  static const std::vector<provider_spec> all{
    {"openai", "https://api.openai.com/v1", {"OPENAI_BASE_URL"}, {"OPENAI_API_KEY"}, true},
    {"anthropic",
     "https://api.anthropic.com/v1",
     {"ANTHROPIC_BASE_URL"},
     {"ANTHROPIC_API_KEY"},
     true,
     "messages"},
    {"azure", "", {"AZURE_OPENAI_ENDPOINT"}, {"AZURE_OPENAI_API_KEY"}, true},
    {"gemini",
     "https://generativelanguage.googleapis.com/v1beta/openai",
     {"GEMINI_BASE_URL"},
     {"GOOGLE_API_KEY", "GEMINI_API_KEY"},
     true},
    {"hf",
     "https://router.huggingface.co/v1",
     {"HF_BASE_URL"},
     {"HF_TOKEN", "HUGGINGFACEHUB_API_TOKEN"},
     true},
    {"ollama", "http://localhost:11434/v1", {"OLLAMA_BASE_URL", "OLLAMA_HOST"}, {"OLLAMA_API_KEY"}},
    {"vllm", "http://localhost:8000/v1", {"VLLM_BASE_URL"}, {"VLLM_API_KEY"}},
    {"openrouter",
     "https://openrouter.ai/api/v1",
     {"OPENROUTER_BASE_URL"},
     {"OPENROUTER_API_KEY"},
     true},
    {"llamacpp", "http://localhost:8080/v1", {"LLAMACPP_BASE_URL"}, {"LLAMA_API_KEY"}},
    {"custom", "", {}, {}},
    {"mock", "", {}, {}},
  };
  return all;
}

result<model_target> parse_model_name(const model_options& options, const env_lookup& env) {
  if (options.model.empty())
    return fail(errc::invalid_argument,
                "no model given: use --model provider/model, e.g. --model openai/gpt-4.1");
  auto found = find_provider(options.model);
  if (!found)
    return fail(found.error());
  const auto& p = **found;
  model_target target{std::string{p.name}, options.model.substr(p.name.size() + 1), "", ""};
  if (target.model.empty())
    return fail(errc::invalid_argument,
                fmt::format("model '{}' names no {}", options.model,
                            p.name == "mock" ? "script: write mock/path.json" : "model"));
  if (p.name == "mock")
    return target;
  target.api = options.api == "auto" ? std::string{p.api} : options.api;
  target.api_version = target_version(p, options, env);
  auto url = target_url(p, options, env, !target.api_version.empty());
  if (!url)
    return fail(url.error());
  auto key = choose_key(p, options, env, *url == p.base_url || p.base_url.empty());
  if (!key)
    return fail(key.error());
  auto extra = target_headers(p, options, env);
  if (!extra)
    return fail(extra.error());
  target.headers = std::move(*extra);
  target.base_url = *url;
  target.key_variable = *key;
  return target;
}

}  // namespace troupe
