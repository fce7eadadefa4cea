#include "runtime/net/http_answer.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace troupe {
namespace {

std::string_view reason_of(unsigned status) {
  switch (status) {
  case 200:
    return "OK";
  case 201:
    return "Created";
  case 202:
    return "Accepted";
  case 204:
    return "No Content";
  case 400:
    return "Bad Request";
  case 401:
    return "Unauthorized";
  case 403:
    return "Forbidden";
  case 404:
    return "Not Found";
  case 405:
    return "Method Not Allowed";
  case 408:
    return "Request Timeout";
  case 409:
    return "Conflict";
  case 413:
    return "Content Too Large";
  case 429:
    return "Too Many Requests";
  case 500:
    return "Internal Server Error";
  case 502:
    return "Bad Gateway";
  case 503:
    return "Service Unavailable";
  default:
    return "Status";
  }
}

}  // namespace

bool has_body(unsigned status) noexcept {
  return status >= 200 && status != 204 && status != 304;
}

std::string head_of(const server_response& r, const answer_form& form) {
  std::string out;
  out.reserve(256);
  out.append("HTTP/1.1 ").append(std::to_string(r.status)).append(" ");
  out.append(reason_of(r.status)).append("\r\n");
  for (auto& [name, value] : r.headers)
    out.append(name).append(": ").append(value).append("\r\n");
  if (has_body(r.status) && !r.source)
    out.append("content-length: ").append(std::to_string(r.body.size())).append("\r\n");
  else if (has_body(r.status) && form.version >= 11)
    out += "transfer-encoding: chunked\r\n";
  if (!form.keep_alive)
    out += "connection: close\r\n";
  else if (form.version < 11)
    out += "connection: keep-alive\r\n";
  out += "\r\n";
  return out;
}

std::string chunk_head(std::size_t bytes) {
  if (bytes == 0)
    return {};
  std::array<char, 20> digits{};
  auto end = std::to_chars(digits.data(), digits.data() + digits.size(), bytes, 16).ptr;
  return std::string{digits.data(), end} + "\r\n";
}

std::string_view chunk_tail(std::size_t bytes, bool last) noexcept {
  constexpr std::string_view both = "\r\n0\r\n\r\n";
  auto from = bytes == 0 ? 2u : 0u;
  return last ? both.substr(from) : both.substr(from, 2 - from);
}

server_response plain_text(unsigned status, std::string text) {
  server_response out;
  out.status = status;
  out.headers = {{"content-type", "text/plain"}};
  out.body = std::move(text);
  return out;
}

}  // namespace troupe
