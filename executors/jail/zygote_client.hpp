#pragma once
// The runtime's side of the zygote: starts it, asks it for sandboxes, starts it again when it dies.

#include "executors/jail/cgroup.hpp"
#include "executors/jail/sys.hpp"
#include "executors/jail/wire.hpp"
#include "runtime/core/error.hpp"
#include "runtime/net/reactor.hpp"

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::jail {

/// A sandbox's first process, just cloned. It is our child.
struct spawned {
  pid_t pid = 0;
  unique_fd pidfd;
  unsigned zygote = 0;  ///< counts the zygotes: only forks of one have the same layout in memory
};

/// What the zygote said of itself when it was ready.
struct zygote_hello {
  bool ready = false;
  bool root = false;
  std::string python;
};

/// All members on the reactor's thread only.
class zygote_client : public std::enable_shared_from_this<zygote_client> {
public:
  using spawn_fn = std::function<void(result<spawned>)>;
  using hello_fn = std::function<void(const zygote_hello&)>;

  /// `arguments` are launcher.cpp's. `on_hello` is called whenever a zygote has become ready.
  zygote_client(reactor& io, std::string path, std::vector<std::string> arguments,
                hello_fn on_hello);
  ~zygote_client();

  /// The far ends of a sandbox's channels (data, control, output), and its control groups.
  struct channels {
    std::array<unique_fd, channel_fds> ends;
    cgroup_entry groups;
  };
  using channels_fn = std::function<result<channels>()>;

  /// Asks for one sandbox. Starts the zygote when there is none. `make` is called for each attempt:
  /// a sandbox that a dying zygote left half made keeps the channels it was born with. `done` is
  /// called once, later. A zygote that says nothing while it should is killed, and the next one
  /// gets its requests; one that answers others is only busy. Errors  unavailable: the zygote does
  /// not start, has died eight times over this request, or the kernel refused; the detail says
  /// which.
  void spawn(spawn_request request, channels_fn make, spawn_fn done);

  /// Ends the zygote, fails open requests, calls `done` when it has been reaped.
  void close(std::function<void()> done);

private:
  struct process;
  struct request {
    spawn_request message;
    channels_fn make;
    spawn_fn done;
    unsigned deaths = 0;  ///< zygotes that died over it
    bool sent = false;
  };

  result<void> start();
  void watch_socket();
  void watch_stderr();
  void watch_exit();
  void on_message();
  bool take_message();
  void on_hello(std::string_view text);
  void on_reply(const spawn_reply& reply, unique_fd pidfd);
  void send_open_requests();
  [[nodiscard]] result<bool> send_one(request& r);
  void on_exit();
  void end_orphan(const process& p);
  void fail_one(std::uint32_t id, error why);
  void kill_process();
  void watch_silence();
  void fail_all(const error& why);

  reactor& io_;
  std::string path_;
  std::vector<std::string> arguments_;
  hello_fn hello_fn_;
  std::deque<request> requests_;
  std::uint32_t last_id_ = 0;
  unsigned started_ = 0;
  std::shared_ptr<process> process_;
  time_point asked_{};  ///< when the first of the requests came
  bool watching_ = false;
  bool closing_ = false;
  std::function<void()> closed_;
};

}  // namespace troupe::jail
