#pragma once
// "provider/model": where the model is, what it is called there, which variable holds the key.

#include "config/options.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// A provider that troupe knows by name.
/// Source  each provider's own documentation for base URLs and variable names.
struct provider_spec {
  std::string_view name;
  std::string_view base_url;                    ///< without a trailing slash; empty: has none
  std::vector<std::string_view> url_variables;  ///< the first one set wins
  std::vector<std::string_view> key_variables;  ///< the first one set wins
  bool needs_key = false;         ///< at its own base URL, or wherever, if it has none
  std::string_view api = "chat";  ///< its wire format: chat, responses, messages
};

[[nodiscard]] const std::vector<provider_spec>& providers();

/// Where the calls of a model go.
struct model_target {
  std::string provider;
  std::string model;          ///< the provider's own name; for mock: path of the script
  std::string base_url;       ///< http, https or unix, without a trailing slash; empty for mock
  std::string key_variable;   ///< holds the key and is set; empty: calls go without a key
  std::string api = "chat";   ///< chat, responses, messages
  std::string api_version{};  ///< as asked for, or from OPENAI_API_VERSION for azure
  std::vector<std::pair<std::string, std::string>> headers{};  ///< name and value

  bool operator==(const model_target&) const = default;
};

/// Reads `options.model` with its base_url and api_key_env. Pure; the key itself is not read into
/// the result.
/// A key is demanded only at the provider's own address: a server of one's own may need none.
/// Azure's base URL ends in /openai/v1, the API without versions, unless a version is given.
/// Errors  invalid_argument: no provider or an unknown one (nearest named), no model, a base URL or
///         a header of another form; denied: no key (the variable named).
[[nodiscard]] result<model_target> parse_model_name(const model_options& options,
                                                    const env_lookup& env);

}  // namespace troupe
