#pragma once
// An actor that is being restarted is waited for: its supervisor decides, whoever needs it asks
// again.

#include "actors/caf_glue.hpp"

#include <caf/action.hpp>

#include <cstdint>
#include <utility>

namespace troupe {

// How often it is asked, and what lies between: ten seconds in all.
inline constexpr millis ask_again_after{100};
inline constexpr std::uint32_t ask_again_limit = 100;

/// Runs `fn` in that actor a little later. It may have ended by then: nothing happens.
template <class F>
void ask_again(caf::event_based_actor* self, timers& clock, F fn) {
  clock.in(ask_again_after,
           [to = glue::weak_handle{self}, fn = std::move(fn)] { to.post(caf::make_action(fn)); });
}

}  // namespace troupe
