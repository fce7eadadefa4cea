#include "tests/net/http_fixture.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace troupe::test {
namespace {

int listen_tcp(std::uint16_t& port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(fd, generic, size) == 0);
  REQUIRE(::getsockname(fd, generic, &size) == 0);
  port = ntohs(address.sin_port);
  return fd;
}

int listen_unix(const std::string& path) {
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

std::size_t body_length(std::string_view header) {
  auto at = header.find("content-length: ");
  return at == std::string_view::npos
           ? 0
           : std::strtoul(std::string{header.substr(at + 16)}.c_str(), nullptr, 10);
}

}  // namespace

std::unique_ptr<http_server> serve(reactor& io, http_server::handler_fn handler,
                                   http_server::options opts) {
  auto server = http_server::listen(io, std::move(opts), std::move(handler));
  REQUIRE(server);
  return std::move(*server);
}

void echo(server_request request, const http_server::respond_fn& respond) {
  server_response r;
  r.headers = {{"x-method", request.method}, {"x-target", request.target}};
  for (auto& [name, value] : request.headers)
    r.headers.emplace_back("x-got-" + name, value);
  r.body = std::move(request.body);
  respond(std::move(r));
}

std::string header(const http_response& r, std::string_view name) {
  auto it =
    std::find_if(r.headers.begin(), r.headers.end(), [&](auto& h) { return h.first == name; });
  return it == r.headers.end() ? "(none)" : it->second;
}

http_failure failed(const answer& a) {
  REQUIRE(!a);
  return a.error();
}

http_response good(const answer& a) {
  INFO((a ? std::string{} : to_string(a.error().what)));
  REQUIRE(a);
  return *a;
}

http_failure time_out(http_client& client, const url& to, std::string_view phase) {
  for (millis span{40};; span *= 2) {
    auto before = steady_clock::now();
    auto f = failed(fetch(client, post(to), soon(span)));
    CHECK(f.what.code == errc::timeout);
    CHECK(steady_clock::now() - before >= span);
    if (f.what.detail.find(phase) != std::string::npos || span > patience / 8)
      return f;
  }
}

raw_server::peer::~peer() {
  ::close(fd_);
}

std::string raw_server::peer::read_request() {
  std::string got;
  std::array<char, 4096> buffer;
  while (true) {
    if (auto end = got.find("\r\n\r\n"); end != std::string::npos)
      if (got.size() >= end + 4 + body_length(std::string_view{got}.substr(0, end)))
        return got;
    auto n = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (n <= 0)
      return {};
    got.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

void raw_server::peer::send(std::string_view bytes) {
  while (!bytes.empty()) {
    auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0)
      return;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void raw_server::peer::half_close() {
  ::shutdown(fd_, SHUT_WR);
}

std::size_t raw_server::peer::drain() {
  return read_to_end().size();
}

std::string raw_server::peer::read_to_end() {
  std::string got;
  std::array<char, 65536> buffer;
  while (true) {
    auto n = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (n <= 0)
      return got;
    got.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

raw_server::raw_server(script_fn script, const std::string& path) : script_{std::move(script)} {
  fd_ = path.empty() ? listen_tcp(port_) : listen_unix(path);
  REQUIRE(::listen(fd_, 64) == 0);
  thread_ = std::thread{[this] { accept_all(); }};
}

raw_server::~raw_server() {
  ::shutdown(fd_, SHUT_RDWR);
  thread_.join();
  {
    std::lock_guard lock{mutex_};
    for (auto fd : open_)
      ::shutdown(fd, SHUT_RDWR);
  }
  for (auto& t : handlers_)
    t.join();
  ::close(fd_);
}

void raw_server::accept_all() {
  while (true) {
    int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0)
      return;
    auto number = ++accepted_;
    {
      std::lock_guard lock{mutex_};
      open_.push_back(fd);
    }
    handlers_.emplace_back([this, fd, number] {
      peer p{fd};
      script_(p, number);
      std::lock_guard lock{mutex_};
      std::erase(open_, fd);
    });
  }
}

temp_dir::temp_dir() {
  auto pattern = (std::filesystem::temp_directory_path() / "troupe-test-XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

temp_dir::~temp_dir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string temp_dir::file(std::string_view name) const {
  return path_ + "/" + std::string{name};
}

}  // namespace troupe::test
