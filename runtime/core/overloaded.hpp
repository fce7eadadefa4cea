#pragma once

namespace troupe {

/// Several lambdas as one visitor for std::visit.
template <class... Ts>
struct overloaded : Ts... {
  using Ts::operator()...;
};

template <class... Ts>
overloaded(Ts...) -> overloaded<Ts...>;  // Clang 16 does not deduce aggregates yet

}  // namespace troupe
