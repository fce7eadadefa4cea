#pragma once
// How an answer is compared with its targets.

#include "runtime/core/error.hpp"
#include "runtime/eval/dataset.hpp"
#include "runtime/journal/journal.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

enum class scorer_kind : std::uint8_t { exact, includes, regex, numeric };

[[nodiscard]] std::string_view to_string(scorer_kind kind) noexcept;

/// Errors  invalid_argument: the four names, the nearest.
[[nodiscard]] result<scorer_kind> scorer_from(std::string_view name);

/// `relative` is of the target's size, `absolute` is for targets near zero: near enough is either.
struct numeric_tolerance {
  double relative = 1e-6;
  double absolute = 1e-9;
};

struct scorer_options {
  scorer_kind kind = scorer_kind::exact;
  bool ignore_case = false;  ///< exact, includes, regex; by Unicode's simple case folding
  numeric_tolerance tolerance;
};

/// A score in [0, 1], or none: then the sample is unscored, which is not the same as wrong.
struct verdict {
  std::optional<double> score;
  std::string note;  ///< one line: how it was decided

  bool operator==(const verdict&) const = default;
};

/// Compares an answer's text (Python's str of it) with the targets; any target that fits is
/// enough. Targets that cannot be read are passed over; if none can, the answer is unscored, and
/// so it is without an answer or a target. Pure.
///   exact     equal after Unicode white space is trimmed from both ends; nothing else is changed.
///   includes  the trimmed target stands somewhere in the answer; blank targets cannot be read.
///   regex     the target is an RE2 pattern that is found somewhere in the answer (^ and $ are the
///             text's ends). RE2: linear time whatever the pattern, no back-references.
///   numeric   the answer's number is near the target's. Read as one number if the whole text is
///             one, else the last number in the text. Understood: signs (also U+2212), thousands
///             separators (1,234 and 1_234), scientific notation, $ € £ ¥ before, a unit after,
///             fractions (3/4, 1 3/4), and per cent: 50% is near 50 and near 0.5, as people write
///             either. Digits that are part of a word (Q3) are no number; a decimal comma is not
///             understood.
[[nodiscard]] verdict score_answer(const scorer_options& options,
                                   std::optional<std::string_view> answer,
                                   const std::vector<std::string>& targets);

/// What a run's end means for its score: ends by error or cancelled are unscored; a run that hit
/// a limit without an answer scores 0 when its target can be read, since a limit is part of the
/// task; all else is score_answer's.
/// Shape   `end` is a run_result's: success, max_steps, deadline, budget, stuck, cancelled, error.
[[nodiscard]] verdict score_run(const scorer_options& options, std::string_view end,
                                std::optional<std::string_view> answer,
                                const std::vector<std::string>& targets);

/// Whether some target can be read: for a check of the dataset before anything is spent.
/// Errors  invalid_argument: what is wrong with the last one; none given.
[[nodiscard]] result<void> check_targets(const scorer_options& options,
                                         const std::vector<std::string>& targets);

/// Scores a finished run of a sample.
using scorer = std::function<verdict(const sample& of, const run_result& r)>;

/// score_run on a result: a run has an answer unless its answer and answer_value are both empty.
[[nodiscard]] scorer make_scorer(const scorer_options& options);

}  // namespace troupe
