#include "actors/hook_gate.hpp"

#include "actors/caf_glue.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

namespace troupe {
namespace {

bool is_of(const run_hook& hook, hook_point at) {
  return std::ranges::find(hook.points, at) != hook.points.end();
}

/// A verdict, or why there is none.
using hook_answer = tl::expected<hook_verdict, std::string>;

/// Hands the first answer on, and once it is dropped the news that there will be none.
class reply_slot {
public:
  using done_fn = std::function<void(hook_answer)>;

  explicit reply_slot(done_fn done) : done_{std::move(done)} {}
  ~reply_slot() { settle(tl::unexpected(std::string{"it gave no verdict"})); }
  reply_slot(const reply_slot&) = delete;
  reply_slot& operator=(const reply_slot&) = delete;

  void settle(hook_answer v) {
    if (!settled_.exchange(true))
      done_(std::move(v));
  }

private:
  std::atomic<bool> settled_{false};
  done_fn done_;
};

/// Why a change is none that can be made; empty: it can.
std::string why_not(const hook_event& e, const json& changed) {
  if (!changed.is_object())
    return "what it changed is no object";
  static const std::vector<std::string> of_model{"temperature", "max_output_tokens", "seed",
                                                 "extra_body"};
  static const std::vector<std::string> of_tool{"arguments"}, of_code{"code"}, none;
  auto& allowed = e.at == hook_point::before_model  ? of_model
                  : e.at == hook_point::before_tool ? of_tool
                  : e.at == hook_point::before_code ? of_code
                                                    : none;
  for (auto& [key, value] : changed.items()) {
    if (std::ranges::find(allowed, key) == allowed.end())
      return "'" + key + "' cannot be changed at " + std::string{to_string(e.at)};
    if (key == "code" && !value.is_string())
      return "the code it gave is no text";
    if ((key == "temperature" && !value.is_number())
        || ((key == "seed" || key == "max_output_tokens") && !value.is_number_integer())
        || (key == "extra_body" && !value.is_object()))
      return "'" + key + "' has a value of another type";
  }
  return {};
}

}  // namespace

struct hook_gate::question {
  hook_event event;
  then_fn then;
  std::size_t next = 0;
  const run_hook* asked = nullptr;
  json changes = nullptr;
};

hook_gate::hook_gate(caf::event_based_actor* self,
                     std::shared_ptr<const std::vector<run_hook>> hooks, noted_fn noted)
  : self_{self}, hooks_{std::move(hooks)}, noted_{std::move(noted)} {
  if (hooks_)
    for (auto& hook : *hooks_)
      for (auto at : hook.points)
        wanted_ |= 1u << static_cast<unsigned>(at);
}

void hook_gate::ask(hook_event e, then_fn then) {
  ask_next(std::make_shared<question>(question{std::move(e), std::move(then)}));
}

void hook_gate::ask_next(const std::shared_ptr<question>& q) {
  while (q->next < hooks_->size() && !is_of((*hooks_)[q->next], q->event.at))
    ++q->next;
  if (q->next == hooks_->size()) {
    q->then({std::move(q->changes), false, {}});
    return;
  }
  q->asked = &(*hooks_)[q->next++];
  auto slot = std::make_shared<reply_slot>([to = glue::weak_handle{self_}, this, q](hook_answer v) {
    to.post(caf::make_action([this, q, v = std::move(v)] {
      if (v)
        on_verdict(q, *v);
      else
        on_failure(q, v.error());
    }));
  });
  try {
    q->asked->call(q->event, [slot](hook_verdict v) { slot->settle(std::move(v)); });
  } catch (const std::exception& e) {
    slot->settle(tl::unexpected(std::string{e.what()}));
  }
}

void hook_gate::on_verdict(const std::shared_ptr<question>& q, const hook_verdict& v) {
  if (v.vetoed) {
    noted_(*q->asked, q->event, "vetoed", v.reason);
    q->then(v);
    return;
  }
  if (!v.changed.is_null()) {
    if (auto why = why_not(q->event, v.changed); !why.empty()) {
      on_failure(q, why);
      return;
    }
    noted_(*q->asked, q->event, "changed", dump_json(v.changed));
    q->event.what.update(v.changed);
    if (q->changes.is_null())
      q->changes = json::object();
    q->changes.update(v.changed);
  }
  ask_next(q);
}

void hook_gate::on_failure(const std::shared_ptr<question>& q, const std::string& why) {
  noted_(*q->asked, q->event, "failed", why);
  if (q->asked->must)
    q->then(hook_verdict::veto("the hook '" + q->asked->name + "' failed: " + why));
  else
    ask_next(q);
}

void hook_gate::tell(const hook_event& e) const {
  for (auto& hook : *hooks_)
    if (is_of(hook, e.at))
      try {
        hook.call(e, [](const hook_verdict&) {});
      } catch (const std::exception& failure) {
        noted_(hook, e, "failed", failure.what());
      }
}

}  // namespace troupe
