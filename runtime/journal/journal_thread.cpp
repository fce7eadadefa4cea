#include "runtime/journal/journal_thread.hpp"

#include <algorithm>
#include <future>
#include <iterator>
#include <utility>

namespace troupe {
namespace {

std::size_t bytes_of(const journal_entry& entry) {
  std::size_t n = sizeof(journal_entry);
  for (const auto& e : entry.events)
    n += sizeof e + e.kind.size() + e.payload.size();
  if (entry.result)
    n += entry.result->answer.size() + entry.result->error.size() + entry.result->score_note.size();
  return n;
}

tl::unexpected<error> stopped() {
  return fail(errc::cancelled, "the journal is closing");
}

}  // namespace

journal_thread::journal_thread(std::unique_ptr<journal> owned, journal_thread_limits limits)
  : limits_{limits}, journal_{std::move(owned)}, thread_{[this] { run(); }} {}

journal_thread::~journal_thread() {
  stop();
}

bool journal_thread::full(std::size_t bytes) const {
  // An entry larger than the whole bound must still get through, alone.
  return !waiting_.empty()
         && (waiting_.size() >= limits_.max_entries || waiting_bytes_ + bytes > limits_.max_bytes);
}

result<void> journal_thread::push(item&& it) {
  if (stopping_)
    return stopped();
  waiting_bytes_ += it.bytes;
  waiting_.push_back(std::move(it));
  work_.notify_one();
  return {};
}

result<void> journal_thread::append(journal_entry&& entry, durable_fn durable) {
  auto bytes = bytes_of(entry);
  std::lock_guard lock{mutex_};
  if (stopping_)
    return stopped();
  if (full(bytes))
    return fail(errc::over_budget, "the journal's queue is full");
  return push({std::move(entry), std::nullopt, std::move(durable), bytes, false});
}

result<void> journal_thread::append_blocking(journal_entry&& entry, durable_fn durable) {
  auto bytes = bytes_of(entry);
  std::unique_lock lock{mutex_};
  room_.wait(lock, [&] { return stopping_ || !full(bytes); });
  if (stopping_)
    return stopped();
  return push({std::move(entry), std::nullopt, std::move(durable), bytes, false});
}

void journal_thread::when_room(std::function<void()> fn) {
  std::lock_guard lock{mutex_};
  room_wanted_.push_back(std::move(fn));
  work_.notify_one();
}

result<void> journal_thread::put_batch(batch_record record, durable_fn durable) {
  std::lock_guard lock{mutex_};
  return push({{}, std::move(record), std::move(durable), 0, false});
}

result<void> journal_thread::flush(std::function<void()> settled) {
  std::lock_guard lock{mutex_};
  auto done = [fn = std::move(settled)](const result<void>&) { fn(); };
  return push({{}, std::nullopt, std::move(done), 0, true});
}

void journal_thread::flush_blocking() {
  std::promise<void> settled;
  if (flush([&settled] { settled.set_value(); }))
    settled.get_future().wait();
  else
    stop();  // whoever is stopping it drains it too
}

void journal_thread::stop() {
  {
    std::lock_guard lock{mutex_};
    stopping_ = true;
    work_.notify_one();
    room_.notify_all();
  }
  std::lock_guard once{stop_mutex_};
  if (thread_.joinable())
    thread_.join();
  journal_.reset();
}

journal_thread_stats journal_thread::stats() const {
  std::lock_guard lock{mutex_};
  auto copy = stats_;
  copy.waiting = waiting_.size();
  return copy;
}

void journal_thread::run() {
  while (true) {
    std::unique_lock lock{mutex_};
    work_.wait(lock, [this] { return stopping_ || !waiting_.empty() || !room_wanted_.empty(); });
    auto group = take_group();
    auto last = stopping_ && group.empty();
    room_.notify_all();
    lock.unlock();
    commit(std::move(group));
    tell_room(last);
    if (last)
      return;
  }
}

std::vector<journal_thread::item> journal_thread::take_group() {
  auto end =
    waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), limits_.max_group));
  std::vector<item> group{std::move_iterator{waiting_.begin()}, std::move_iterator{end}};
  waiting_.erase(waiting_.begin(), end);
  for (const auto& it : group)
    waiting_bytes_ -= it.bytes;
  stats_.largest_group = std::max(stats_.largest_group, group.size());
  return group;
}

/// A batch record ends a transaction: it has to come after all entries before it.
void journal_thread::commit(std::vector<item> group) {
  std::vector<item> entries;
  for (auto& it : group) {
    if (!it.batch) {
      entries.push_back(std::move(it));
      continue;
    }
    commit_entries(entries);
    auto done = journal_->put_batch(*it.batch);
    if (it.done)
      it.done(done);
  }
  commit_entries(entries);
}

void journal_thread::commit_entries(std::vector<item>& items) {
  std::vector<journal_entry> entries;
  std::size_t events = 0;
  for (auto& it : items)
    if (!it.marker) {
      events += it.entry.events.size();
      entries.push_back(std::move(it.entry));
    }
  auto done = entries.empty() ? result<void>{} : journal_->append(entries);
  if (!entries.empty()) {
    std::lock_guard lock{mutex_};
    stats_.commits += done ? 1 : 0;
    stats_.failures += done ? 0 : 1;
    stats_.entries += done ? entries.size() : 0;
    stats_.events += done ? events : 0;
  }
  for (auto& it : items)
    if (it.done)
      it.done(done);
  items.clear();
}

void journal_thread::tell_room(bool stopping) {
  std::vector<std::function<void()>> tell;
  {
    std::lock_guard lock{mutex_};
    if (stopping
        || (waiting_.size() <= limits_.max_entries / 2 && waiting_bytes_ <= limits_.max_bytes / 2))
      tell.swap(room_wanted_);
  }
  for (auto& fn : tell)
    fn();
}

}  // namespace troupe
