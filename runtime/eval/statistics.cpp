#include "runtime/eval/statistics.hpp"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe {
namespace {

/// Means of samples, in order of their ids.
std::vector<double> sample_means(const std::vector<run_result>& results, bool errors_as_wrong) {
  struct sum {
    double total = 0;
    std::size_t n = 0;
  };
  std::map<std::string_view, sum> samples;
  for (const auto& r : results) {
    auto kind = class_of(r.end);
    auto wrong = errors_as_wrong && kind == end_class::errored;
    if (!wrong && (!r.score || kind == end_class::errored || kind == end_class::cancelled))
      continue;
    auto& s = samples[r.sample_id];
    s.total += wrong ? 0 : *r.score;
    ++s.n;
  }
  std::vector<double> means;
  for (const auto& [id, s] : samples)
    means.push_back(s.total / static_cast<double>(s.n));
  return means;
}

bool are_proportions(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return x == 0 || x == 1; });
}

/// A mean of values in [0, 1] lies in [0, 1], whatever t says.
estimate within_unit(estimate e) {
  if (e.ci95)
    e.ci95 = interval{std::max(0.0, e.ci95->low), std::min(1.0, e.ci95->high)};
  return e;
}

}  // namespace

double student_t_quantile(double p, double degrees) {
  return boost::math::quantile(boost::math::students_t_distribution<double>{degrees}, p);
}

estimate mean_of(const std::vector<double>& values) {
  estimate e;
  e.n = values.size();
  if (values.empty())
    return e;
  auto n = static_cast<double>(e.n);
  e.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (e.n < 2)
    return e;
  double squares = 0;
  for (auto x : values)
    squares += (x - e.mean) * (x - e.mean);
  e.standard_error = std::sqrt(squares / (n - 1) / n);
  auto half = student_t_quantile(0.975, n - 1) * *e.standard_error;
  e.ci95 = interval{e.mean - half, e.mean + half};
  return e;
}

std::optional<interval> wilson(double successes, double n, double z) {
  if (n <= 0)
    return std::nullopt;
  auto p = successes / n;
  auto scale = 1 + z * z / n;
  auto middle = (p + z * z / (2 * n)) / scale;
  auto half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / scale;
  return interval{std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

std::optional<double> percentile(std::vector<double> values, double p) {
  if (values.empty())
    return std::nullopt;
  std::sort(values.begin(), values.end());
  auto at = std::clamp(p, 0.0, 100.0) / 100 * static_cast<double>(values.size() - 1);
  auto low = static_cast<std::size_t>(at);
  auto high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

end_class class_of(std::string_view end) noexcept {
  if (end == "success")
    return end_class::completed;
  if (end == "max_steps" || end == "deadline" || end == "budget" || end == "stuck")
    return end_class::limited;
  return end == "cancelled" ? end_class::cancelled : end_class::errored;
}

end_counts count_ends(const std::vector<run_result>& results) {
  end_counts counts;
  for (const auto& r : results) {
    auto kind = class_of(r.end);
    switch (kind) {
    case end_class::completed:
      ++counts.completed;
      break;
    case end_class::limited:
      ++counts.limited;
      break;
    case end_class::errored:
      ++counts.errored;
      break;
    case end_class::cancelled:
      ++counts.cancelled;
      break;
    }
    if (!r.score && (kind == end_class::completed || kind == end_class::limited))
      ++counts.unscored;
  }
  return counts;
}

accuracy accuracy_of(const std::vector<run_result>& results) {
  accuracy out;
  std::map<std::string_view, std::size_t> epochs;
  for (const auto& r : results)
    out.epochs = std::max(out.epochs, ++epochs[r.sample_id]);
  auto means = sample_means(results, false);
  out.errors_excluded = within_unit(mean_of(means));
  out.errors_as_wrong = within_unit(mean_of(sample_means(results, true)));
  if (out.epochs == 1 && are_proportions(means))
    out.wilson95 =
      wilson(std::accumulate(means.begin(), means.end(), 0.0), static_cast<double>(means.size()));
  return out;
}

}  // namespace troupe
