#pragma once
// What can be said about scores, and how surely.

#include "runtime/journal/journal.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct interval {
  double low = 0;
  double high = 0;

  bool operator==(const interval&) const = default;
};

/// A mean with its uncertainty. Without two values there is a mean, but nothing to say about it.
struct estimate {
  std::size_t n = 0;
  double mean = 0;                       ///< 0 when n is 0
  std::optional<double> standard_error;  ///< sample standard deviation (n - 1) over sqrt(n)
  std::optional<interval> ci95;          ///< Student's t with n - 1 degrees of freedom
};

[[nodiscard]] estimate mean_of(const std::vector<double>& values);

/// The t with P(T <= t) = p. Shape  0 < p < 1, degrees > 0.
[[nodiscard]] double student_t_quantile(double p, double degrees);

/// Wilson's score interval of a proportion; nothing when n is 0. Also sensible at 0 and 1.
/// Source  Wilson 1927; Brown, Cai, DasGupta 2001.
[[nodiscard]] std::optional<interval> wilson(double successes, double n,
                                             double z = 1.959963984540054);

/// The p-th percentile by linear interpolation (Hyndman and Fan's type 7, NumPy's default).
/// Shape  0 <= p <= 100; nothing for no values. The order of `values` does not matter.
[[nodiscard]] std::optional<double> percentile(std::vector<double> values, double p);

/// Four kinds of end that must not be mixed.
enum class end_class : std::uint8_t { completed, limited, errored, cancelled };

/// success; max_steps, deadline, budget, stuck; cancelled; all else, unknown words too, is errored.
[[nodiscard]] end_class class_of(std::string_view end) noexcept;

struct end_counts {
  std::uint64_t completed = 0;
  std::uint64_t limited = 0;
  std::uint64_t errored = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t unscored = 0;  ///< of the completed and the limited: no score
};

/// Accuracy of a batch. The sample is the unit: its epochs are averaged first and never counted
/// as questions of their own.
struct accuracy {
  std::size_t epochs = 0;    ///< most epochs of one sample
  estimate errors_excluded;  ///< over samples with a score
  estimate errors_as_wrong;  ///< errored runs count as 0
  /// For errors_excluded, when every score is 0 or 1 and no sample was run twice.
  std::optional<interval> wilson95;
};

[[nodiscard]] end_counts count_ends(const std::vector<run_result>& results);
[[nodiscard]] accuracy accuracy_of(const std::vector<run_result>& results);

}  // namespace troupe
