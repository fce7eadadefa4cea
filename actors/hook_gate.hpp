#pragma once
// A run's hooks: asked one after the other, never trusted to answer.

#include "runtime/policy/hooks.hpp"

#include <caf/event_based_actor.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace troupe {

/// A part of a run's actor. What a hook says comes back in that actor, or not at all once it has
/// ended.
class hook_gate {
public:
  using then_fn = std::function<void(hook_verdict)>;
  /// Hears what hooks did besides agreeing: "changed", "vetoed", "failed", and why.
  using noted_fn = std::function<void(const run_hook&, const hook_event&, std::string_view did,
                                      const std::string& why)>;

  /// `hooks` may be null: then nothing is wanted.
  hook_gate(caf::event_based_actor* self, std::shared_ptr<const std::vector<run_hook>> hooks,
            noted_fn noted);

  [[nodiscard]] bool wants(hook_point at) const noexcept { return (wanted_ >> int(at)) & 1u; }

  /// Asks the hooks of that point in their order, each about what those before it have made of it.
  /// `then` once: the first veto, or all changes together.
  void ask(hook_event e, then_fn then);

  /// Tells those of that point.
  void tell(const hook_event& e) const;

private:
  struct question;
  void ask_next(const std::shared_ptr<question>& q);
  void on_verdict(const std::shared_ptr<question>& q, const hook_verdict& v);
  void on_failure(const std::shared_ptr<question>& q, const std::string& why);

  caf::event_based_actor* self_;
  std::shared_ptr<const std::vector<run_hook>> hooks_;
  noted_fn noted_;
  unsigned wanted_ = 0;  ///< a bit for each point
};

}  // namespace troupe
