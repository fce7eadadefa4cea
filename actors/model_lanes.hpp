#pragma once
// The endpoints that one model client may send to, each behind its door, and the choice among them.

#include "actors/model_client.hpp"
#include "runtime/policy/budget.hpp"

#include <optional>
#include <vector>

namespace troupe {

/// Not thread-safe: part of the model client.
class model_lanes {
public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  struct picked {
    std::size_t lane = none;  ///< none: no endpoint takes the call now
    time_point when = never;  ///< then: ask again at; never: when a try has ended
  };

  model_lanes(std::vector<model_route> routes, const model_client_options& options);

  /// Number of choices of model; a call's choice is below it.
  [[nodiscard]] std::uint32_t choices() const {
    return static_cast<std::uint32_t>(choices_.size());
  }

  /// Number of lanes of that choice.
  [[nodiscard]] std::size_t lanes(std::uint32_t choice) const { return choices_[choice].size(); }

  /// The least loaded lane that takes the call now, `avoid` only when no other does.
  [[nodiscard]] picked pick(std::uint32_t choice, const call_size& size, std::size_t avoid,
                            time_point now);

  /// Another lane of that choice takes the call now.
  [[nodiscard]] bool has_other(std::uint32_t choice, const call_size& size, std::size_t lane,
                               time_point now);

  /// No lane of that choice is worth asking before a pause is over.
  [[nodiscard]] bool all_down(std::uint32_t choice, time_point now) const;

  /// Failed attempts at coming back, of the lane of that choice that had the fewest.
  [[nodiscard]] std::uint32_t failed_probes(std::uint32_t choice) const;

  /// Why the lanes of that choice are down.
  [[nodiscard]] const model_failure& last_failure(std::uint32_t choice) const;

  [[nodiscard]] admission::pass start(std::size_t lane, const call_size& size, time_point now);

  /// `longest_wait`: a Retry-After beyond it is nothing to wait for.
  void end(std::size_t lane, const admission::pass& pass, model_outcome& outcome,
           millis longest_wait, time_point now);
  void abandon(std::size_t lane, const admission::pass& pass, time_point now);

  /// The most that a try of that size may use there.
  [[nodiscard]] spending most(std::size_t lane, const call_size& size) const;

  /// What a try with those tokens has used.
  [[nodiscard]] spending used(std::size_t lane, const token_usage& tokens) const;

  /// The request as that lane's endpoint shall get it.
  [[nodiscard]] model_request addressed(std::size_t lane, const model_request& request);

  [[nodiscard]] endpoint& where(std::size_t lane) const { return *lanes_[lane].route.where; }
  [[nodiscard]] const model_route& route(std::size_t lane) const { return lanes_[lane].route; }

  void tune(const model_tune& x);

private:
  struct renamed {
    std::shared_ptr<const model_settings> from, to;
  };
  struct gate {
    model_route route;
    admission door;
    model_failure last_failure;
    std::vector<renamed> settings;  ///< an agent has two or three
  };

  std::vector<gate> lanes_;
  std::vector<std::vector<std::size_t>> choices_;
};

}  // namespace troupe
