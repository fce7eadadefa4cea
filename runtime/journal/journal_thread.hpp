#pragma once
// A journal on its own thread: entries come from any thread, all that wait are committed together.

#include "runtime/journal/journal.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace troupe {

struct journal_thread_limits {
  std::size_t max_entries = 65'536;   ///< waiting to be taken
  std::size_t max_bytes = 64u << 20;  ///< of their texts
  std::size_t max_group = 4'096;      ///< entries committed at once
};

struct journal_thread_stats {
  std::uint64_t entries = 0;  ///< made durable
  std::uint64_t events = 0;
  std::uint64_t commits = 0;
  std::uint64_t failures = 0;  ///< commits that kept nothing
  std::size_t waiting = 0;
  std::size_t largest_group = 0;
};

/// Owns a journal and the one thread that writes it. Thread-safe. Resource.
/// The callbacks run on that thread, in the order of the calls, each exactly once; they must not
/// block, throw, or end this object.
class journal_thread {
public:
  using durable_fn = std::function<void(result<void>)>;

  explicit journal_thread(std::unique_ptr<journal> owned, journal_thread_limits limits = {});
  ~journal_thread();  ///< stop()
  journal_thread(const journal_thread&) = delete;
  journal_thread& operator=(const journal_thread&) = delete;

  /// Takes the entry; `durable` hears when it is committed, or why it is not (each entry of a
  /// failed group hears the same error; nothing of the group was written). May be empty.
  /// Errors  over_budget (the queue is full: see when_room), cancelled (stopping). Then `entry` is
  ///         untouched and `durable` is not called.
  [[nodiscard]] result<void> append(journal_entry&& entry, durable_fn durable);

  /// The same, but waits while the queue is full. Not for actors, reactors or callbacks.
  [[nodiscard]] result<void> append_blocking(journal_entry&& entry, durable_fn durable);

  /// Calls `fn` once, on the journal's thread, as soon as the queue is at most half full. When
  /// stopping it is called too.
  void when_room(std::function<void()> fn);

  /// Writes the batch record after all that was appended before. Never refused for lack of room.
  /// Errors  cancelled (stopping).
  [[nodiscard]] result<void> put_batch(batch_record record, durable_fn durable);

  /// `settled` is called once everything appended before has been answered.
  /// Errors  cancelled (stopping).
  [[nodiscard]] result<void> flush(std::function<void()> settled);

  /// Waits for that. Not for actors, reactors or callbacks.
  void flush_blocking();

  /// Refuses new work, writes what waits, ends the thread, closes the journal. Idempotent; blocks.
  void stop();

  [[nodiscard]] journal_thread_stats stats() const;

private:
  struct item {
    journal_entry entry;
    std::optional<batch_record> batch;
    durable_fn done;
    std::size_t bytes = 0;
    bool marker = false;  ///< carries nothing, only wants to be answered in turn
  };

  [[nodiscard]] bool full(std::size_t bytes) const;
  [[nodiscard]] result<void> push(item&& it);
  void run();
  [[nodiscard]] std::vector<item> take_group();
  void commit(std::vector<item> group);
  void commit_entries(std::vector<item>& items);
  void tell_room(bool stopping);

  journal_thread_limits limits_;
  std::unique_ptr<journal> journal_;  ///< the thread's own until it has ended

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable room_;
  std::deque<item> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::vector<std::function<void()>> room_wanted_;
  journal_thread_stats stats_;
  bool stopping_ = false;

  std::mutex stop_mutex_;
  std::thread thread_;  ///< last: runs as soon as it is made
};

}  // namespace troupe
