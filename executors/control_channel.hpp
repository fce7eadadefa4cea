#pragma once
// The channels between the runtime and a sandbox, as both backends of this machine have them.

#include "executors/channel.hpp"
#include "runtime/core/error.hpp"

#include <cstddef>
#include <type_traits>

namespace troupe {

/// One side's ends of a sandbox's channels.
struct sandbox_ends {
  unique_fd data;     ///< a stream: frames to and from the worker
  unique_fd control;  ///< messages to and from the sandbox's first process
  unique_fd output;   ///< a pipe: what the code prints
};

struct sandbox_channels {
  sandbox_ends ours;
  sandbox_ends theirs;
};

/// Errors  unavailable: no descriptor is free.
[[nodiscard]] result<sandbox_channels> make_sandbox_channels();

/// Our end of the control socket: orders of one byte go in, notes of one struct come out. The first
/// process may be under the code's influence: notes of another size are passed over.
class control_channel final : public channel {
public:
  using channel::channel;

  /// One order, with a descriptor for whom it is meant. False when it cannot be sent now.
  [[nodiscard]] bool send(char order) const noexcept;
  [[nodiscard]] bool send(char order, int descriptor) const noexcept;

  /// Takes a note that has come, and the descriptor that came with it. False when there is none;
  /// the channel is closed once the other end has been.
  template <class Note>
  [[nodiscard]] bool take(Note& note, unique_fd& descriptor) {
    static_assert(std::is_trivially_copyable_v<Note>);
    return take(&note, sizeof note, descriptor);
  }

private:
  bool take(void* note, std::size_t size, unique_fd& descriptor);
};

}  // namespace troupe
