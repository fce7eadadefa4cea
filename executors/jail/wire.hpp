#pragma once
// What the runtime, the zygote and a sandbox's init say to each other over seqpacket sockets: one
// struct per message. All three are built from this tree and run on one machine.

#include <cstddef>
#include <cstdint>

namespace troupe::jail {

/// Descriptor of the zygote's own socket, and of init's control socket.
inline constexpr int zygote_fd = 3;

/// Descriptor of the zygote's birth record.
inline constexpr int birth_fd = 4;

/// Where code in a sandbox with a network finds the runtime's proxy: port of 127.0.0.1.
inline constexpr std::uint16_t proxy_port = 3128;

/// Ends the name of a module that the zygote imports only when it is there.
inline constexpr char may_be_missing = '?';

/// Descriptor of the zygote's Python module, which is outside the root that Python starts in.
inline constexpr int module_fd = 5;

/// Descriptor of the directory for the zygote's memory (frozen_memory.hpp), where there is one.
inline constexpr int store_fd = 6;

/// One page that the runtime and the zygote share. The kernel writes `pid` in the course of the
/// clone, so that no zygote dies too early for the runtime to know which child it left behind.
struct birth_record {
  std::uint32_t request = 0;  ///< the id of the request under way
  std::int32_t pid = 0;       ///< 0 before the clone
};

/// Descriptors of a request, in this order: data, control, output, then the control groups.
inline constexpr std::size_t channel_fds = 3;
inline constexpr std::size_t max_task_fds = 4;
inline constexpr std::size_t max_request_fds = channel_fds + max_task_fds + 1;

/// The runtime asks for one sandbox.
struct spawn_request {
  std::uint32_t id = 0;
  std::uint32_t init_uid = 0;  ///< host uids, unique to the slot; unused when rootless
  std::uint32_t worker_uid = 0;
  std::uint32_t processes = 0;
  std::uint32_t open_files = 0;
  std::uint32_t frame_bytes = 0;
  std::uint32_t task_fds = 0;     ///< version 1 `tasks` files that come with it
  std::uint32_t checkpoints = 0;  ///< 1: the worker may make them
  std::uint32_t into_group = 0;   ///< 1 when a version 2 directory comes last
  std::uint32_t network = 0;      ///< 1: a network namespace of its own, with proxy_port
  std::uint64_t memory_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t work_bytes = 0;
  std::uint64_t tmp_bytes = 0;
};

/// Room for the name of a step of the set-up, and for what can be done about it.
inline constexpr std::size_t stage_bytes = 160;

/// The zygote's answer, with a pidfd when there is a process. With an error it is ending, unreaped.
struct spawn_reply {
  std::uint32_t id = 0;
  std::int32_t pid = 0;
  std::int32_t error = 0;        ///< errno
  char stage[stage_bytes] = {};  ///< what failed
};

/// The runtime to init: raise SIGINT in the worker. Init answers with note_kind::interrupted.
inline constexpr char interrupt_order = 'I';

/// Kill everything but the checkpoint, and go back to it. Answered with restored or no_checkpoint.
inline constexpr char restore_order = 'K';

/// Comes with the worker's end of a fresh data channel, which the restored worker goes on with.
inline constexpr char resume_order = 'R';

/// Comes with an end of a pipe, for the worker: a branch's memory goes from one worker's to the
/// other's.
inline constexpr char branch_order = 'F';

enum class note_kind : std::uint8_t {
  failed = 'F',         ///< set-up failed; value: errno, stage: what
  lacking = 'L',        ///< set-up went on without something; value: lacking_* bits
  interrupted = 'i',    ///< the signal is pending in the worker
  restored = 'B',       ///< value: status of the worker that died; waits for resume_order
  no_checkpoint = 'N',  ///< restore_order cannot be followed
  listening = 'P',      ///< comes with the listening socket of proxy_port
  exited = 'X'          ///< value: the worker's status, as wait reports it
};

inline constexpr std::int32_t lacking_proc = 1;
inline constexpr std::int32_t lacking_nesting_limit = 2;
inline constexpr std::int32_t lacking_landlock = 4;

/// Init to the runtime.
struct init_note {
  note_kind kind{};
  std::int32_t value = 0;
  char stage[stage_bytes] = {};
};

}  // namespace troupe::jail
