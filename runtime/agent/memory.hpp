#pragma once
// What one run remembers: the conversation as it is sent, which of its messages must stay, and the
// ways to make it shorter.

#include "runtime/model/transcript.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// What making it shorter came to.
struct compaction {
  std::size_t bytes_before = 0;
  std::size_t bytes_after = 0;
  std::uint32_t messages = 0;  ///< that were shortened or left out; 0: nothing was done
};

/// Value. A step is one reply of the model and what followed it. The system prompt, the first user
/// message, the task and the last plan stay, whatever is shortened.
class run_memory {
public:
  explicit run_memory(transcript start) : messages_{std::move(start)} {}

  [[nodiscard]] const transcript& messages() const noexcept { return messages_; }

  void append(const chat_message& message) { messages_.append(message); }

  /// The task, which ends what the run starts from.
  void append_task(const chat_message& task);

  /// A plan, and the word to carry it out.
  void append_plan(std::string plan);

  /// Replaces observations before the last `keep_steps` steps by a line that says how much was cut,
  /// oldest first, until at most `target` bytes are left.
  compaction cut_observations(std::size_t target, std::uint32_t keep_steps);

  /// Bytes of what `replace_old` would leave out.
  [[nodiscard]] std::size_t old_bytes(std::uint32_t keep_steps) const;

  /// Puts `summary` in the place of all before the last `keep_steps` steps that need not stay.
  /// `task` is the task's message.
  compaction replace_old(std::string_view summary, std::uint32_t keep_steps,
                         const chat_message& task);

  /// The last resort: cuts all observations as above, and the newest to a quarter.
  compaction squeeze();

private:
  [[nodiscard]] std::size_t tail_start(std::uint32_t keep_steps) const;
  [[nodiscard]] std::size_t first_user() const;
  [[nodiscard]] bool is_observation(std::size_t i) const;
  [[nodiscard]] bool stays(std::size_t i) const;
  [[nodiscard]] compaction put(transcript made, std::uint32_t messages);

  transcript messages_;
  std::uint32_t task_at_ = 0;
  std::uint32_t plan_at_ = 0;     ///< 0: there is none
  std::uint32_t summary_at_ = 0;  ///< 0: there is none
};

}  // namespace troupe
