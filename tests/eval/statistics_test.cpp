#include "runtime/eval/statistics.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

Catch::Approx near(double x) {
  return Catch::Approx(x).epsilon(1e-6);
}

run_result scored(std::string sample, std::uint32_t epoch, std::optional<double> score,
                  std::string end = "success") {
  run_result r;
  r.sample_id = std::move(sample);
  r.epoch = epoch;
  r.score = score;
  r.end = std::move(end);
  return r;
}

}  // namespace

TEST_CASE("t quantiles are those of the tables", "[statistics]") {
  // Source: R, qt(0.975, df).
  CHECK(student_t_quantile(0.975, 1) == near(12.7062047));
  CHECK(student_t_quantile(0.975, 7) == near(2.3646243));
  CHECK(student_t_quantile(0.975, 9) == near(2.2621572));
  CHECK(student_t_quantile(0.975, 199) == near(1.9719565));
}

TEST_CASE("a mean has its sample standard error and a t interval", "[statistics]") {
  // Source: Python, statistics.mean(v) and statistics.stdev(v) / sqrt(8); R, qt(0.975, 7).
  auto e = mean_of({1, 1, 0, 1, 0, 1, 1, 1});
  CHECK(e.mean == near(0.75));
  CHECK(*e.standard_error == near(0.1636634176769943));
  CHECK(e.ci95->low == near(0.75 - 2.3646243 * 0.1636634176769943));
  CHECK(e.ci95->high == near(0.75 + 2.3646243 * 0.1636634176769943));
}

TEST_CASE("one value has a mean and no uncertainty, none has neither", "[statistics]") {
  CHECK(mean_of({0.5}).mean == 0.5);
  CHECK(!mean_of({0.5}).standard_error);
  CHECK(!mean_of({0.5}).ci95);
  CHECK(mean_of({}).n == 0);
  CHECK(*mean_of({1, 1, 1}).standard_error == 0);
}

TEST_CASE("Wilson's interval is that of R, also at the ends", "[statistics]") {
  // Source: R, binom::binom.confint(x, 10, methods = "wilson").
  auto some = wilson(8, 10);
  CHECK(some->low == near(0.4901625));
  CHECK(some->high == near(0.9433178));
  auto none = wilson(0, 10);
  CHECK(none->low == 0);
  CHECK(none->high == near(0.2775328));
  CHECK(wilson(10, 10)->high == near(1.0));
  CHECK(!wilson(0, 0));
}

TEST_CASE("percentiles interpolate as NumPy's do", "[statistics]") {
  // Source: numpy.percentile([4, 1, 3, 2], p).
  CHECK(*percentile({4, 1, 3, 2}, 40) == near(2.2));
  CHECK(*percentile({4, 1, 3, 2}, 50) == near(2.5));
  CHECK(*percentile({4, 1, 3, 2}, 0) == 1);
  CHECK(*percentile({4, 1, 3, 2}, 100) == 4);
  CHECK(*percentile({7}, 99) == 7);
  CHECK(!percentile({}, 50));
}

TEST_CASE("epochs are averaged per sample first and are no questions of their own",
          "[statistics]") {
  std::vector<run_result> results{scored("a", 1, 1), scored("a", 2, 0), scored("b", 1, 1),
                                  scored("b", 2, 1), scored("c", 1, 0), scored("c", 2, 0),
                                  scored("d", 1, 1), scored("d", 2, 0), scored("d", 3, 0)};
  auto a = accuracy_of(results);
  CHECK(a.epochs == 3);
  CHECK(a.errors_excluded.n == 4);
  // Source: Python, statistics over [0.5, 1, 0, 1/3].
  CHECK(a.errors_excluded.mean == near(0.4583333333333333));
  CHECK(*a.errors_excluded.standard_error == near(0.20833333333333334));
  CHECK(!a.wilson95);
}

TEST_CASE("errors are left out of one accuracy and wrong in the other", "[statistics]") {
  std::vector<run_result> results{scored("a", 1, 1),
                                  scored("b", 1, 0, "max_steps"),
                                  scored("c", 1, std::nullopt, "error"),
                                  scored("d", 1, std::nullopt, "cancelled"),
                                  scored("e", 1, std::nullopt),
                                  scored("f", 1, 1, "deadline")};
  auto a = accuracy_of(results);
  CHECK(a.errors_excluded.n == 3);
  CHECK(a.errors_excluded.mean == near(2.0 / 3));
  CHECK(a.errors_as_wrong.n == 4);
  CHECK(a.errors_as_wrong.mean == near(0.5));
  CHECK(a.wilson95->low == wilson(2, 3)->low);
  CHECK(a.errors_excluded.ci95->high == 1.0);
  auto counts = count_ends(results);
  CHECK(counts.completed == 2);
  CHECK(counts.limited == 2);
  CHECK(counts.errored == 1);
  CHECK(counts.cancelled == 1);
  CHECK(counts.unscored == 1);
}

TEST_CASE("an end that nobody knows is an error, never a success", "[statistics]") {
  CHECK(class_of("stuck") == end_class::limited);
  CHECK(class_of("quarantined") == end_class::errored);
  CHECK(class_of("") == end_class::errored);
}
