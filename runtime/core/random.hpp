#pragma once
// Seeded randomness for policies: values in, values out, reproducible.

#include <cmath>
#include <cstdint>

namespace troupe {

/// SplitMix64 (Steele, Lea, Flood 2014): 8 bytes of state, good enough for jitter and mocks.
class rng {
public:
  explicit rng(std::uint64_t seed) : state_{seed} {}

  std::uint64_t next() {
    auto z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  /// Standard normal, by Box and Muller.
  double normal() {
    constexpr double two_pi = 6.283185307179586;
    auto u = 1.0 - uniform();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(two_pi * uniform());
  }

private:
  std::uint64_t state_;
};

}  // namespace troupe
