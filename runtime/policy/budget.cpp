#include "runtime/policy/budget.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace troupe {
namespace {

/// One thing that is limited: its amount in a sum, and the limit.
struct measure {
  double amount;
  double limit;
  const char* noun;
};

std::array<measure, 5> measures(const budget_limits& limits, const spending& s) {
  auto number = [](std::uint64_t n) { return static_cast<double>(n); };
  return {{{number(s.tokens.total()), number(limits.tokens), "tokens"},
           {number(s.tokens.input), number(limits.input_tokens), "input tokens"},
           {number(s.tokens.output), number(limits.output_tokens), "output tokens"},
           {number(s.calls), number(limits.calls), "calls"},
           {s.money, limits.money, ""}}};
}

bool used_up(const measure& m) {
  return m.limit > 0 && m.amount >= m.limit;
}

bool exceeded(const measure& m) {
  return m.limit > 0 && m.amount > m.limit;
}

std::uint64_t less(std::uint64_t a, std::uint64_t b) {
  return a - std::min(a, b);
}

void take_away(spending& from, const spending& x) {
  from.tokens.input = less(from.tokens.input, x.tokens.input);
  from.tokens.output = less(from.tokens.output, x.tokens.output);
  from.tokens.cached = less(from.tokens.cached, x.tokens.cached);
  from.tokens.reasoning = less(from.tokens.reasoning, x.tokens.reasoning);
  from.tokens.cache_written = less(from.tokens.cache_written, x.tokens.cache_written);
  from.calls = less(from.calls, x.calls);
  from.money = std::max(0.0, from.money - x.money);
}

std::string text_of(const measure& m, const std::string& currency) {
  char text[96];
  if (m.noun[0] == '\0')
    std::snprintf(text, sizeof text, "%.4f of %.4f ", m.amount, m.limit);
  else
    std::snprintf(text, sizeof text, "%.0f of %.0f ", m.amount, m.limit);
  return text + (m.noun[0] == '\0' ? currency : m.noun);
}

}  // namespace

spending& spending::operator+=(const spending& x) {
  tokens += x.tokens;
  calls += x.calls;
  money += x.money;
  return *this;
}

budget_id budget_tree::add(budget_id parent, budget_limits limits, std::string name) {
  node fresh{parent, limits, std::move(name), {}, {}, 0};
  if (free_.empty()) {
    nodes_.push_back(std::move(fresh));
    return static_cast<budget_id>(nodes_.size());
  }
  auto id = free_.back();
  free_.pop_back();
  nodes_[id - 1] = std::move(fresh);
  return id;
}

void budget_tree::remove(budget_id id) {
  free_.push_back(id);
}

budget_answer budget_tree::ask(const node& n, const spending& most) {
  for (auto& m : measures(n.limits, n.spent))
    if (used_up(m))
      return budget_answer::spent;
  if (n.under_way == 0)
    return budget_answer::granted;
  auto all = n.spent;
  all += n.reserved;
  all += most;
  for (auto& m : measures(n.limits, all))
    if (exceeded(m))
      return budget_answer::wait;
  return budget_answer::granted;
}

budget_answer budget_tree::reserve(budget_id id, const spending& most) {
  auto worst = budget_answer::granted;
  for (auto i = id; i != 0; i = nodes_[i - 1].parent)
    worst = std::max(worst, ask(nodes_[i - 1], most));
  if (worst != budget_answer::granted)
    return worst;
  for (auto i = id; i != 0; i = nodes_[i - 1].parent) {
    nodes_[i - 1].reserved += most;
    ++nodes_[i - 1].under_way;
  }
  return budget_answer::granted;
}

void budget_tree::settle(budget_id id, const spending& reserved, const spending& used) {
  for (auto i = id; i != 0; i = nodes_[i - 1].parent) {
    auto& n = nodes_[i - 1];
    take_away(n.reserved, reserved);
    n.spent += used;
    if (--n.under_way == 0)
      n.reserved = {};  // sums of doubles leave crumbs
  }
}

void budget_tree::carry(budget_id id, const spending& before) {
  for (auto i = id; i != 0; i = nodes_[i - 1].parent)
    nodes_[i - 1].spent += before;
}

std::string budget_tree::exhausted(budget_id id, const std::string& currency) const {
  for (auto i = id; i != 0; i = nodes_[i - 1].parent) {
    auto& n = nodes_[i - 1];
    for (auto& m : measures(n.limits, n.spent))
      if (used_up(m))
        return n.name + "'s budget is spent: " + text_of(m, currency);
  }
  return {};
}

}  // namespace troupe
