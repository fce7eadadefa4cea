#include "executors/jail/hello.hpp"

#include <cstring>

#include <sys/socket.h>

namespace troupe::jail {
namespace {

/// "ok" or "error", then one "key value" per line.
void send_hello(const std::string& text) {
  must(::send(zygote_fd, text.data(), text.size(), MSG_NOSIGNAL) >= 0, "send hello");
}

/// In one line: Python's messages may have many.
std::string flat(const std::string& text) {
  std::string out;
  for (auto c : text) {
    auto space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  return out;
}

}  // namespace

void send_ready(const std::string& python, privilege mode) {
  send_hello("ok\npython " + python + "\nmode " + mode_text(mode) + "\n");
}

void send_failure(const setup_error& e) {
  auto reason = e.number() != 0 ? std::string{": "} + std::strerror(e.number()) : std::string{};
  send_hello("error\nreason " + flat(e.what() + reason) + "\n");
}

}  // namespace troupe::jail
