#pragma once

namespace troupe {

/// Several lambdas as one visitor for std::visit.
template <class... Ts>
struct overloaded : Ts... {
  using Ts::operator()...;
};

}  // namespace troupe
