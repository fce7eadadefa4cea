#pragma once
// What a worker can be asked to do, from the first frame to the answer that the owner hears. One
// class for each kind; worker_link carries them out.

#include "executors/executor.hpp"
#include "executors/worker_protocol.hpp"

#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// How a request ended, as the link saw it.
struct request_end {
  std::optional<worker::done> reply{};  ///< nothing: the sandbox died
  snippet_end lost = snippet_end::ok;   ///< without a reply: how it died
  bool restored = false;                ///< ... but went back to before the request
  std::string reason{};                 ///< of the death, or of the interrupt
  bool interrupted = false;
  bool flooded = false;  ///< interrupted since it printed too much
  std::string output{};
  std::size_t output_dropped = 0;
  sandbox_usage usage{};
};

/// Reactor's thread only.
class worker_request {
public:
  virtual ~worker_request() = default;

  /// The frame that begins it (`last` is null) or follows `last`; nothing when it is done.
  /// Errors  corrupt: no honest worker replies like that.
  [[nodiscard]] virtual result<std::optional<std::string>> next(std::uint32_t id,
                                                                worker::done* last) = 0;

  /// Tells the owner. Once.
  virtual void finish(request_end end) = 0;

  /// Deadlines of the frame that `next` gave last, when it is sent `now`.
  [[nodiscard]] virtual time_point soft_deadline() const { return never; }
  [[nodiscard]] virtual time_point hard_deadline(time_point now) const = 0;

  /// True when the worker can go back to before it.
  [[nodiscard]] virtual bool checkpointed() const { return false; }

  /// True when the code that it runs may call tools.
  [[nodiscard]] virtual bool takes_calls() const { return false; }

  /// False when what is printed meanwhile is left to the next request.
  [[nodiscard]] virtual bool takes_output() const { return true; }

  /// True when too much output ends the request alone, not the sandbox.
  [[nodiscard]] virtual bool stops_at_flood() const { return false; }
};

[[nodiscard]] std::unique_ptr<worker_request> make_snippet_request(snippet code, bool checkpoint,
                                                                   sandbox::done_fn done);
[[nodiscard]] std::unique_ptr<worker_request> make_put_request(sandbox_file file,
                                                               sandbox::put_fn done);
[[nodiscard]] std::unique_ptr<worker_request> make_get_request(std::string path,
                                                               std::size_t max_bytes,
                                                               const sandbox_limits& limits,
                                                               sandbox::got_fn done);
[[nodiscard]] std::unique_ptr<worker_request> make_shell_request(shell_command command,
                                                                 sandbox::shell_fn done);

}  // namespace troupe
