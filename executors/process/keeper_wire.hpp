#pragma once
// What the runtime and a keeper say to each other over a seqpacket socket: one struct per message.
// Both are built from this tree and run on one machine.

#include <cstdint>

namespace troupe::process {

/// Descriptors of a new keeper: the worker inherits all but the last as they are. The first message
/// on the control socket is a jail::spawn_request, for the limits in it.
inline constexpr int data_fd = 3;
inline constexpr int source_fd = 4;  ///< the worker's Python
inline constexpr int control_fd = 5;

/// The runtime to the keeper: raise SIGINT in the worker. Answered by note_kind::interrupted. When
/// the runtime closes its end, or only its sending side, the keeper ends everything.
inline constexpr char interrupt_order = 'I';

enum class note_kind : std::uint8_t {
  started = 'S',      ///< value: the worker's pid, which is its session too
  failed = 'F',       ///< there is no worker; value: errno, stage: what failed
  interrupted = 'i',  ///< the signal is pending in the worker
  exited = 'X'        ///< value: the worker's status, as wait reports it
};

/// The keeper to the runtime.
struct keeper_note {
  note_kind kind{};
  std::int32_t value = 0;
  char stage[48] = {};
};

/// A keeper's exit status, as bits: what it could not end or remove. 0: nothing is left.
inline constexpr int left_processes = 1;
inline constexpr int left_files = 2;

}  // namespace troupe::process
