#pragma once
// The one budget of a runtime, for every actor that spends of it.

#include "runtime/policy/budget.hpp"

#include <mutex>
#include <string>
#include <utility>

namespace troupe {

/// A budget_tree that is shared. Thread-safe: a lock is held for O(depth) at each call.
class budget_ledger {
public:
  explicit budget_ledger(std::string currency = "USD") : currency_{std::move(currency)} {}

  [[nodiscard]] budget_id add(budget_id parent, budget_limits limits, std::string name) {
    std::lock_guard lock{mutex_};
    return tree_.add(parent, limits, std::move(name));
  }

  void remove(budget_id id) {
    std::lock_guard lock{mutex_};
    tree_.remove(id);
  }

  [[nodiscard]] budget_answer reserve(budget_id id, const spending& most) {
    std::lock_guard lock{mutex_};
    return tree_.reserve(id, most);
  }

  void settle(budget_id id, const spending& reserved, const spending& used) {
    std::lock_guard lock{mutex_};
    tree_.settle(id, reserved, used);
  }

  void carry(budget_id id, const spending& before) {
    std::lock_guard lock{mutex_};
    tree_.carry(id, before);
  }

  [[nodiscard]] spending spent(budget_id id) const {
    std::lock_guard lock{mutex_};
    return tree_.spent(id);
  }

  /// As budget_tree's.
  [[nodiscard]] std::string exhausted(budget_id id) const {
    std::lock_guard lock{mutex_};
    return tree_.exhausted(id, currency_);
  }

  [[nodiscard]] const std::string& currency() const { return currency_; }

private:
  mutable std::mutex mutex_;
  budget_tree tree_;
  std::string currency_;
};

}  // namespace troupe
