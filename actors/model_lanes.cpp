#include "actors/model_lanes.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::size_t most_renamed = 64;

}  // namespace

model_lanes::model_lanes(std::vector<model_route> routes, const model_client_options& options) {
  for (auto& route : routes) {
    admission_settings how;
    if (route.choice == 0)
      how.rates = options.rates;
    how.places.most = options.max_in_flight;
    if (route.where->in_process())
      how.places.first = how.places.most;
    how.breaker = options.breaker;
    choices_.resize(std::max<std::size_t>(choices_.size(), route.choice + 1));
    choices_[route.choice].push_back(lanes_.size());
    lanes_.push_back({std::move(route), admission{how}, {}, {}});
  }
}

model_lanes::picked model_lanes::pick(std::uint32_t choice, const call_size& size,
                                      std::size_t avoid, time_point now) {
  picked best;
  for (auto i : choices_[choice]) {
    auto when = lanes_[i].door.ready_at(size, now);
    if (when > now) {
      best.when = std::min(best.when, when);
      continue;
    }
    auto better = best.lane == none || best.lane == avoid
                  || (i != avoid && lanes_[i].door.load() < lanes_[best.lane].door.load());
    if (better)
      best.lane = i;
  }
  return best;
}

bool model_lanes::has_other(std::uint32_t choice, const call_size& size, std::size_t lane,
                            time_point now) {
  if (choices_[choice].size() < 2)
    return false;
  auto other = pick(choice, size, lane, now).lane;
  return other != none && other != lane;
}

bool model_lanes::all_down(std::uint32_t choice, time_point now) const {
  auto& all = choices_[choice];
  return std::all_of(all.begin(), all.end(), [&](auto i) {
    return lanes_[i].door.breaker().at(now) != circuit_breaker::state::closed;
  });
}

std::uint32_t model_lanes::failed_probes(std::uint32_t choice) const {
  auto least = static_cast<std::uint32_t>(-1);
  for (auto i : choices_[choice])
    least = std::min(least, lanes_[i].door.breaker().failed_probes());
  return least;
}

const model_failure& model_lanes::last_failure(std::uint32_t choice) const {
  return lanes_[choices_[choice].front()].last_failure;
}

admission::pass model_lanes::start(std::size_t lane, const call_size& size, time_point now) {
  return lanes_[lane].door.start(size, now);
}

void model_lanes::end(std::size_t lane, const admission::pass& pass, model_outcome& outcome,
                      millis longest_wait, time_point now) {
  auto& l = lanes_[lane];
  if (outcome) {
    l.door.end(pass, {std::nullopt, outcome->usage, std::nullopt}, outcome->rates, now);
    if (outcome->model.empty())
      outcome->model = l.route.model;
    return;
  }
  auto& failure = outcome.error();
  auto wait = failure.retry_after;
  if (wait && *wait > longest_wait)
    wait.reset();
  l.door.end(pass, {failure.kind, {}, wait}, failure.rates, now);
  l.last_failure = failure;
}

void model_lanes::abandon(std::size_t lane, const admission::pass& pass, time_point now) {
  lanes_[lane].door.abandon(pass, now);
}

spending model_lanes::most(std::size_t lane, const call_size& size) const {
  auto& l = lanes_[lane];
  spending out;
  out.calls = 1;
  out.tokens = l.door.estimate().most(size);
  out.money = l.route.cost ? l.route.cost->at_most(out.tokens) : 0;
  return out;
}

spending model_lanes::used(std::size_t lane, const token_usage& tokens) const {
  auto& cost = lanes_[lane].route.cost;
  return {tokens, 1, cost ? cost->of(tokens) : 0};
}

model_request model_lanes::addressed(std::size_t lane, const model_request& request) {
  auto& l = lanes_[lane];
  auto out = request;
  if (l.route.model.empty() || !request.settings || request.settings->model == l.route.model)
    return out;
  auto known = std::find_if(l.settings.begin(), l.settings.end(),
                            [&](auto& r) { return r.from == request.settings; });
  if (known == l.settings.end()) {
    if (l.settings.size() >= most_renamed)
      l.settings.clear();
    auto copy = std::make_shared<model_settings>(*request.settings);
    copy->model = l.route.model;
    l.settings.push_back({request.settings, std::move(copy)});
    known = std::prev(l.settings.end());
  }
  out.settings = known->to;
  return out;
}

void model_lanes::tune(const model_tune& x) {
  for (auto& l : lanes_) {
    if (x.rates && l.route.choice == 0)
      l.door.tell(*x.rates);
    if (x.max_in_flight)
      l.door.set_most(*x.max_in_flight);
  }
}

}  // namespace troupe
