#include "executors/jail/hello.hpp"

#include <cstring>

#include <sys/socket.h>

namespace troupe::jail {
namespace {

/// "ok" or "error", then one "key value" per line.
void send_hello(const std::string& text) {
  must(::send(zygote_fd, text.data(), text.size(), MSG_NOSIGNAL) >= 0, "send hello");
}

}  // namespace

void send_ready(const std::string& python, privilege mode) {
  send_hello("ok\npython " + python + "\nmode " + mode_text(mode) + "\n");
}

void send_failure(const setup_error& e) {
  auto reason = e.number() != 0 ? std::string{": "} + std::strerror(e.number()) : std::string{};
  send_hello("error\nreason " + std::string{e.what()} + reason + "\n");
}

}  // namespace troupe::jail
