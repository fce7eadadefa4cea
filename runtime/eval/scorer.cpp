#include "runtime/eval/scorer.hpp"

#include "runtime/core/text.hpp"
#include "runtime/eval/number_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <re2/re2.h>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 4> names = {"exact", "includes", "regex", "numeric"};
constexpr std::size_t max_pattern_bytes = 10'000;
constexpr std::size_t shown = 60;

/// White space beyond ASCII, in UTF-8 (Unicode's White_Space, and the zero-width no-break space).
constexpr std::array<std::string_view, 20> wide_blanks{
  "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81",
  "\xE2\x80\x82", "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86",
  "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
  "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80", "\xEF\xBB\xBF"};

std::string_view trim_wide(std::string_view text) {
  for (bool again = true; again;) {
    text = trim(text);
    again = false;
    for (auto blank : wide_blanks) {
      if (text.starts_with(blank))
        text.remove_prefix(blank.size()), again = true;
      if (text.ends_with(blank))
        text.remove_suffix(blank.size()), again = true;
    }
  }
  return text;
}

std::string in_quotes(std::string_view text) {
  auto head = utf8_prefix(text, shown);
  std::string out = "'";
  for (auto c : head)
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  return out + (head.size() < text.size() ? "...'" : "'");
}

RE2::Options regex_options(bool ignore_case) {
  RE2::Options o;
  o.set_log_errors(false);
  o.set_case_sensitive(!ignore_case);
  o.set_max_mem(8 << 20);
  o.set_dot_nl(false);
  return o;
}

/// One comparison; an error is a target that cannot be read.
using compared = tl::expected<bool, std::string>;

bool same_text(std::string_view a, std::string_view b, bool ignore_case) {
  if (!ignore_case)
    return a == b;
  RE2 pattern{RE2::QuoteMeta(re2::StringPiece{b.data(), b.size()}), regex_options(true)};
  return pattern.ok() && RE2::FullMatch(re2::StringPiece{a.data(), a.size()}, pattern);
}

bool has_text(std::string_view a, std::string_view b, bool ignore_case) {
  if (!ignore_case)
    return a.find(b) != std::string_view::npos;
  RE2 pattern{RE2::QuoteMeta(re2::StringPiece{b.data(), b.size()}), regex_options(true)};
  return pattern.ok() && RE2::PartialMatch(re2::StringPiece{a.data(), a.size()}, pattern);
}

compared matches(std::string_view answer, std::string_view target, bool ignore_case) {
  if (target.size() > max_pattern_bytes)
    return tl::unexpected{fmt::format("the pattern has more than {} bytes", max_pattern_bytes)};
  RE2 pattern{re2::StringPiece{target.data(), target.size()}, regex_options(ignore_case)};
  if (!pattern.ok())
    return tl::unexpected{
      fmt::format("{} is no RE2 pattern: {}", in_quotes(target), pattern.error())};
  return RE2::PartialMatch(re2::StringPiece{answer.data(), answer.size()}, pattern);
}

bool near(double x, double target, const numeric_tolerance& t) {
  return std::abs(x - target) <= std::max(t.absolute, t.relative * std::abs(target));
}

/// Per cent on one side alone may stand for the number or for its hundredth.
bool near(const written_number& x, const written_number& target, const numeric_tolerance& t) {
  if (near(x.value, target.value, t))
    return true;
  if (x.percent && !target.percent)
    return near(x.value / 100, target.value, t);
  return target.percent && !x.percent && near(x.value, target.value / 100, t);
}

compared fits(const scorer_options& o, std::string_view answer, const std::string& target) {
  switch (o.kind) {
  case scorer_kind::exact:
    return same_text(trim_wide(answer), trim_wide(target), o.ignore_case);
  case scorer_kind::includes:
    if (trim_wide(target).empty())
      return tl::unexpected<std::string>{"the target is blank"};
    return has_text(answer, trim_wide(target), o.ignore_case);
  case scorer_kind::regex:
    return matches(answer, target, o.ignore_case);
  case scorer_kind::numeric:
    break;
  }
  auto wanted = read_number(target);
  if (!wanted)
    return tl::unexpected{fmt::format("the target {} has no number", in_quotes(target))};
  auto got = read_number(answer);
  return got && near(*got, *wanted, o.tolerance);
}

std::string note_of(const scorer_options& o, std::string_view answer) {
  if (o.kind != scorer_kind::numeric)
    return in_quotes(trim_wide(answer));
  auto got = read_number(answer);
  return got ? fmt::format("{}{}", got->value, got->percent ? "%" : "")
             : in_quotes(answer) + " (no number)";
}

}  // namespace

std::string_view to_string(scorer_kind kind) noexcept {
  return names[static_cast<std::size_t>(kind)];
}

result<scorer_kind> scorer_from(std::string_view name) {
  auto it = std::find(names.begin(), names.end(), name);
  if (it != names.end())
    return static_cast<scorer_kind>(it - names.begin());
  return fail(errc::invalid_argument,
              fmt::format("scorer '{}' is none of {}{}", name, fmt::join(names, ", "),
                          did_you_mean(name, {names.begin(), names.end()})));
}

verdict score_answer(const scorer_options& options, std::optional<std::string_view> answer,
                     const std::vector<std::string>& targets) {
  if (targets.empty())
    return {std::nullopt, "no target"};
  if (!answer)
    return {std::nullopt, "no answer"};
  // RE2 and the notes want UTF-8; a sandbox may say anything.
  auto text = to_utf8(*answer);
  std::string unreadable;
  std::size_t read = 0;
  for (const auto& target : targets) {
    auto fit = fits(options, text, target);
    if (!fit) {
      unreadable = fit.error();
      continue;
    }
    ++read;
    if (*fit)
      return {1.0, fmt::format("{}: {} fits {}", to_string(options.kind), note_of(options, text),
                               in_quotes(target))};
  }
  if (read == 0)
    return {std::nullopt, fmt::format("{}: {}", to_string(options.kind), unreadable)};
  return {0.0,
          fmt::format("{}: {} does not fit {}{}", to_string(options.kind), note_of(options, text),
                      in_quotes(targets.front()),
                      targets.size() > 1 ? fmt::format(" nor {} more", targets.size() - 1) : "")};
}

verdict score_run(const scorer_options& options, std::string_view end,
                  std::optional<std::string_view> answer, const std::vector<std::string>& targets) {
  if (end == "error" || end == "cancelled")
    return {std::nullopt, fmt::format("ended by {}", end)};
  if (answer || targets.empty())
    return score_answer(options, answer, targets);
  auto readable = check_targets(options, targets);
  if (!readable)
    return {std::nullopt, readable.error().detail};
  return {0.0, fmt::format("no answer before {}", end)};
}

result<void> check_targets(const scorer_options& options, const std::vector<std::string>& targets) {
  if (targets.empty())
    return fail(errc::invalid_argument, "no target");
  std::string why;
  for (const auto& target : targets) {
    auto fit = fits(options, "", target);
    if (fit)
      return {};
    why = fit.error();
  }
  return fail(errc::invalid_argument, fmt::format("{}: {}", to_string(options.kind), why));
}

scorer make_scorer(const scorer_options& options) {
  return [options](const sample& of, const run_result& r) {
    std::optional<std::string_view> answer;
    if (!r.answer.empty() || !r.answer_value.is_null())
      answer = r.answer;
    return score_run(options, r.end, answer, of.targets);
  };
}

}  // namespace troupe
