#include "executors/jail/proxy_socket.hpp"

#include "executors/jail/sys.hpp"
#include "executors/jail/wire.hpp"

#include <cstring>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace troupe::jail {
namespace {

constexpr int queued_connections = 64;

void bring_loopback_up(int socket) {
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  must(::ioctl(socket, SIOCGIFFLAGS, &request) == 0, "find the loopback interface");
  request.ifr_flags |= IFF_UP;
  must(::ioctl(socket, SIOCSIFFLAGS, &request) == 0, "bring the loopback interface up");
}

}  // namespace

unique_fd listen_for_proxy() {
  unique_fd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  must(static_cast<bool>(listener), "open the proxy's socket");
  bring_loopback_up(listener.get());
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(proxy_port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  must(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0,
       "bind the proxy's socket");
  must(::listen(listener.get(), queued_connections) == 0, "listen on the proxy's socket");
  return listener;
}

}  // namespace troupe::jail
