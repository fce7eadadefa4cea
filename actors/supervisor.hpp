#pragma once
// OTP's supervisor: starts children in order, stops them in reverse, restarts by policy, and ends
// itself when that does not help, so that the failure climbs one level.

#include "actors/messages.hpp"
#include "runtime/core/time.hpp"
#include "runtime/policy/restart.hpp"

#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Which children an abnormal end touches. Source: OTP design principles, "Supervision Strategy".
enum class strategy : std::uint8_t {
  one_for_one,        ///< the one that ended
  one_for_all,        ///< all of them
  rest_for_one,       ///< it and those started after it
  simple_one_for_one  ///< as one_for_one; children come and go by start_child
};

struct supervisor_options {
  std::string name;
  strategy how = strategy::one_for_one;
  restart_settings restarts;
  std::vector<child_spec> children;
  std::function<void(const supervision_report&)> report;  ///< any thread; may be empty
};

/// Errors  invalid_argument: no name, a child without start, two children of one name, children
///         given to simple_one_for_one.
[[nodiscard]] result<void> validate(const supervisor_options& options);

/// Spawns a supervisor as an actor of its own, or as the child that `start` of a child_spec makes.
/// Understands start_child and stop; quits normally after `stop`, with errc::unavailable after too
/// many restarts. `options` must be valid.
[[nodiscard]] caf::actor spawn_supervisor(caf::actor_system& sys, supervisor_options options,
                                          timers& clock);

}  // namespace troupe
