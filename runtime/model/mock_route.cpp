#include "runtime/model/mock_route.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// What providers put before their resources; the deployment of Azure's paths is skipped.
std::string_view without_base(std::string_view path) {
  constexpr std::string_view deployment = "/openai/deployments/";
  if (path.starts_with(deployment)) {
    auto end = path.find('/', deployment.size());
    return end == std::string_view::npos ? std::string_view{} : path.substr(end);
  }
  for (std::string_view base : {"/v1beta/openai", "/openai/v1", "/api/v1", "/v1"})
    if (path.starts_with(base) && path.substr(base.size()).starts_with('/'))
      return path.substr(base.size());
  return path;
}

std::string_view header(const header_list& headers, std::string_view name) {
  auto it = std::find_if(headers.begin(), headers.end(), [&](auto& h) { return h.first == name; });
  return it == headers.end() ? std::string_view{} : std::string_view{it->second};
}

bool is_anthropic(const header_list& headers) {
  return !header(headers, "anthropic-version").empty() || !header(headers, "x-api-key").empty();
}

}  // namespace

mock_route mock_route_of(std::string_view target) {
  auto path = without_base(target.substr(0, target.find('?')));
  if (path == "/chat/completions")
    return {mock_resource::chat};
  if (path == "/responses")
    return {mock_resource::responses};
  if (path == "/messages")
    return {mock_resource::messages};
  constexpr std::string_view models = "/models";
  if (path == models)
    return {mock_resource::models};
  if (path.starts_with("/models/") && path.size() > models.size() + 1)
    return {mock_resource::models, path.substr(models.size() + 1)};
  return {};
}

const mock_wire& mock_wire_of(mock_resource what, const header_list& headers) {
  if (what == mock_resource::responses)
    return mock_responses();
  auto messages =
    what == mock_resource::messages || (what != mock_resource::chat && is_anthropic(headers));
  return messages ? mock_messages() : mock_chat();
}

bool has_key(const header_list& headers) {
  constexpr std::string_view bearer = "Bearer ";
  auto given = header(headers, "authorization");
  if (given.starts_with(bearer) && given.size() > bearer.size())
    return true;
  return !header(headers, "x-api-key").empty() || !header(headers, "api-key").empty();
}

}  // namespace troupe
