#include "runtime/policy/prices.hpp"

#include <algorithm>

namespace troupe {

double price::of(const token_usage& used) const {
  // A server may count these parts beyond the whole.
  auto cached = std::min(used.cached, used.input);
  auto written = std::min(used.cache_written, used.input - cached);
  auto plain = used.input - cached - written;
  auto sum = static_cast<double>(plain) * input
             + static_cast<double>(cached) * cached_input.value_or(input)
             + static_cast<double>(written) * cache_write.value_or(input)
             + static_cast<double>(used.output) * output;
  return sum / 1e6;
}

double price::at_most(const token_usage& most) const {
  auto dearest = std::max({input, cached_input.value_or(input), cache_write.value_or(input)});
  return (static_cast<double>(most.input) * dearest + static_cast<double>(most.output) * output)
         / 1e6;
}

const price* price_list::find(std::string_view model) const {
  auto it = models.find(model);
  return it == models.end() ? nullptr : &it->second;
}

}  // namespace troupe
