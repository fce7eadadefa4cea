#pragma once
// What may be spent, as a tree: a run's spending is its batch's too. A value, no clock.

#include "runtime/core/token_usage.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// 0: no limit.
struct budget_limits {
  std::uint64_t tokens = 0;  ///< input and output
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t calls = 0;  ///< requests sent
  double money = 0;         ///< in the price list's currency

  [[nodiscard]] bool any() const {
    return tokens > 0 || input_tokens > 0 || output_tokens > 0 || calls > 0 || money > 0;
  }
  bool operator==(const budget_limits&) const = default;
};

struct spending {
  token_usage tokens{};
  std::uint64_t calls = 0;
  double money = 0;

  spending& operator+=(const spending& x);
  bool operator==(const spending&) const = default;
};

/// A node of the tree. 0: none.
using budget_id = std::uint32_t;

enum class budget_answer : std::uint8_t {
  granted,
  wait,  ///< what is under way may use up the rest: ask again when some of it has been settled
  spent  ///< for good
};

/// Batches, jobs, runs and their children, each with limits of its own and below its parent's.
/// A call is reserved with the most it may use, and settled with what it used. It is granted when
/// all that is reserved fits beside what was spent; and, so that the last part is not lost, when
/// nothing else of that node is under way and something is left. So no limit is exceeded by more
/// than one reply, as far as the reservations were no less than the replies.
/// Cost  O(depth).
class budget_tree {
public:
  /// `name` is for messages, e.g. "the batch". A parent of 0: a root.
  [[nodiscard]] budget_id add(budget_id parent, budget_limits limits, std::string name);

  /// The node's work is over; what it spent stays its parents'. It must have nothing under way, and
  /// no node below it.
  void remove(budget_id id);

  /// 0 is granted always.
  [[nodiscard]] budget_answer reserve(budget_id id, const spending& most);
  void settle(budget_id id, const spending& reserved, const spending& used);

  /// Spent before, e.g. by an earlier session.
  void carry(budget_id id, const spending& before);

  [[nodiscard]] const spending& spent(budget_id id) const { return nodes_[id - 1].spent; }

  /// One line for the node or parent that has nothing left: "the batch's budget is spent: 1 000 of
  /// 1 000 calls". Empty: there is none.
  [[nodiscard]] std::string exhausted(budget_id id, const std::string& currency) const;

private:
  struct node {
    budget_id parent = 0;
    budget_limits limits;
    std::string name;
    spending spent;
    spending reserved;
    std::uint32_t under_way = 0;
  };

  [[nodiscard]] static budget_answer ask(const node& n, const spending& most);

  std::vector<node> nodes_;
  std::vector<budget_id> free_;
};

}  // namespace troupe
