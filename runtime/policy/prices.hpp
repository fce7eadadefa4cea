#pragma once
// What tokens cost, by model. Values; the file is read by config/price_file.

#include "runtime/core/token_usage.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Units  of money per million tokens.
struct price {
  double input = 0;
  double output = 0;
  std::optional<double> cached_input;  ///< empty: as input
  std::optional<double> cache_write;   ///< empty: as input
  std::string as_of;                   ///< date, as written

  [[nodiscard]] double of(const token_usage& used) const;

  /// The same when it is not known yet what the cache will do.
  [[nodiscard]] double at_most(const token_usage& most) const;

  bool operator==(const price&) const = default;
};

/// Source  config/prices/prices.yaml, or the user's own file.
struct price_list {
  std::string currency = "USD";
  std::map<std::string, price, std::less<>> models;  ///< provider/model, as --model has it

  /// The price of exactly that model, or null: it is not guessed from another's.
  [[nodiscard]] const price* find(std::string_view model) const;
};

}  // namespace troupe
