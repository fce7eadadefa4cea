#pragma once
// The one budget of a runtime, for every actor that spends of it, and the accounts in it.

#include "runtime/policy/budget.hpp"

#include <memory>
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

/// Who pays: a node of a ledger, which lives as long as somebody holds it. A call that is open
/// holds its payer's, and so does every account below. Thread-safe.
class budget_account {
public:
  budget_account(std::shared_ptr<budget_ledger> ledger, budget_limits limits, std::string name)
    : ledger_{std::move(ledger)}, id_{ledger_->add(0, limits, std::move(name))} {}

  /// What this one spends is its parent's too, and limited by both.
  budget_account(std::shared_ptr<budget_account> parent, budget_limits limits, std::string name)
    : parent_{std::move(parent)}, ledger_{parent_->ledger_},
      id_{ledger_->add(parent_->id_, limits, std::move(name))} {}

  ~budget_account() { ledger_->remove(id_); }
  budget_account(const budget_account&) = delete;
  budget_account& operator=(const budget_account&) = delete;

  /// These are budget_tree's.
  [[nodiscard]] budget_answer reserve(const spending& most) { return ledger_->reserve(id_, most); }
  void settle(const spending& reserved, const spending& used) {
    ledger_->settle(id_, reserved, used);
  }
  void carry(const spending& before) { ledger_->carry(id_, before); }
  [[nodiscard]] spending spent() const { return ledger_->spent(id_); }
  [[nodiscard]] std::string exhausted() const { return ledger_->exhausted(id_); }

  [[nodiscard]] const std::string& currency() const { return ledger_->currency(); }

private:
  std::shared_ptr<budget_account> parent_;  // first: it goes last
  std::shared_ptr<budget_ledger> ledger_;
  budget_id id_;
};

}  // namespace troupe
