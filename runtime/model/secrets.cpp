#include "runtime/model/secrets.hpp"

#include <algorithm>
#include <cctype>

namespace troupe {
namespace {

constexpr std::string_view removed = "[removed]";
constexpr std::size_t shortest_known = 8;
constexpr std::size_t shortest_rest = 16;

// OpenAI and Anthropic, Hugging Face, Google, GitHub, AWS, Groq, xAI, Replicate, Slack, a bearer's.
constexpr std::string_view prefixes[] = {"sk-",  "hf_",         "AIza",  "ghp_",   "gho_",
                                         "ghs_", "github_pat_", "AKIA",  "gsk_",   "xai-",
                                         "r8_",  "xoxb-",       "xoxp-", "Bearer "};

bool of_key(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

/// Where the key that begins with `prefix` at `at` ends, or 0 when there is none.
std::size_t end_of_key(std::string_view text, std::size_t at, std::string_view prefix) {
  if (at > 0 && of_key(text[at - 1]))
    return 0;
  auto end = at + prefix.size();
  while (end < text.size() && (of_key(text[end]) || (text[end] == '.' && prefix == "Bearer ")))
    ++end;
  return end - at >= prefix.size() + shortest_rest ? end : 0;
}

void remove_known(std::string& text, std::string_view secret) {
  for (auto at = text.find(secret); at != text.npos; at = text.find(secret, at + removed.size()))
    text.replace(at, secret.size(), removed);
}

void remove_keys(std::string& text, std::string_view prefix) {
  for (auto at = text.find(prefix); at != text.npos; at = text.find(prefix, at + 1))
    if (auto end = end_of_key(text, at, prefix); end != 0)
      text.replace(at, end - at, removed);
}

}  // namespace

std::string without_secrets(std::string text, const std::vector<std::string>& known) {
  for (const auto& secret : known)
    if (secret.size() >= shortest_known)
      remove_known(text, secret);
  for (auto prefix : prefixes)
    remove_keys(text, prefix);
  return text;
}

}  // namespace troupe
