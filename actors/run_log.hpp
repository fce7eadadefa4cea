#pragma once
// What a run keeps in the journal, and what it shows of itself meanwhile.

#include "runtime/core/json.hpp"
#include "runtime/journal/journal.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace troupe {

class run_core;

/// A part of a run's actor.
class run_log {
public:
  explicit run_log(run_core& core) : core_{core} {}

  /// Collects events for one commit. The JSON is only made when somebody wants it.
  class collector {
  public:
    template <class Make>
    void add(std::string kind, Make make) {
      if (entry_)
        log_.take(*entry_, std::move(kind), make());
    }

  private:
    friend run_log;
    explicit collector(run_log& log)
      : log_{log}, entry_{log.wanted() ? std::make_shared<journal_entry>() : nullptr} {}

    run_log& log_;
    std::shared_ptr<journal_entry> entry_;  ///< null: nobody wants it
  };

  [[nodiscard]] collector collect() { return collector{*this}; }

  /// Runs `then` once all of it is durable; at once when nothing is kept.
  template <class Then>
  void commit(const collector& kept, Then then) {
    if (!kept.entry_ || kept.entry_->events.empty())
      then();
    else
      append(kept.entry_, std::make_shared<std::function<void()>>(std::move(then)), 0);
  }

  /// One event that nothing waits for.
  template <class Make>
  void keep(std::string kind, Make make) {
    auto kept = collect();
    kept.add(std::move(kind), std::move(make));
    commit(kept, [] {});
  }

  /// Shows, and does not keep.
  void show(const std::string& kind, const json& payload);

  /// Somebody looks: at this run, or at all.
  [[nodiscard]] bool watched() const;

  /// Why the journal could not be written; empty: it could.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

private:
  void take(journal_entry& entry, std::string kind, const json& payload);
  void append(const std::shared_ptr<const journal_entry>& entry,
              const std::shared_ptr<std::function<void()>>& then, std::uint32_t tries);
  void fail_once(const error& why);
  [[nodiscard]] bool wanted() const;
  [[nodiscard]] bool all_watched() const;

  run_core& core_;
  std::string failure_;
  std::uint64_t shown_ = 0;
  std::uint32_t seq_ = 0;
};

}  // namespace troupe
