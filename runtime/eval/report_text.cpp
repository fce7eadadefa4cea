// A report as a table for people.

#include "runtime/core/text.hpp"
#include "runtime/eval/printable.hpp"
#include "runtime/eval/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>

namespace troupe {
namespace {

constexpr std::size_t label_width = 11;

/// Lines of "label  text"; a line without a label goes on under the last one.
class table {
public:
  void line(std::string_view label, const std::string& text) {
    if (!text.empty())
      out_ += fmt::format("{:<{}}{}\n", label, label_width, text);
  }
  void gap() { out_ += out_.empty() || out_.ends_with("\n\n") ? "" : "\n"; }
  std::string finish() { return std::move(out_); }

private:
  std::string out_;
};

/// 1234567 as "1 234 567".
std::string grouped(std::uint64_t n) {
  auto digits = std::to_string(n);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<std::size_t>(i), 1, ' ');
  return digits;
}

std::string count_of(std::uint64_t n, std::string_view noun, std::string_view plural_end = "s") {
  return fmt::format("{} {}{}", grouped(n), noun, n == 1 ? "" : plural_end);
}

std::string seconds(double s) {
  if (s < 1e-3)
    return fmt::format("{:.0f} us", s * 1e6);
  if (s < 1)
    return fmt::format("{:.1f} ms", s * 1e3);
  if (s < 120)
    return fmt::format("{:.1f} s", s);
  if (s < 7'200)
    return fmt::format("{:.0f} min {:02.0f} s", std::floor(s / 60), std::fmod(s, 60));
  return fmt::format("{:.0f} h {:02.0f} min", std::floor(s / 3'600), std::fmod(s, 3'600) / 60);
}

std::string seconds(micros span) {
  return seconds(static_cast<double>(span.count()) / 1e6);
}

std::string bytes(double b) {
  if (b >= 1e9)
    return fmt::format("{:.1f} GB", b / 1e9);
  return b >= 1e6 ? fmt::format("{:.0f} MB", b / 1e6) : fmt::format("{:.0f} kB", b / 1e3);
}

std::string ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? ""
                    : fmt::format(" ({:.1f} %)",
                                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

double per(std::uint64_t total, std::size_t n) {
  return n == 0 ? 0 : static_cast<double>(total) / static_cast<double>(n);
}

/// An option of the batch's configuration as it was in force; empty when it was not set.
std::string option_of(const report& r, const char* name) {
  if (!r.config.is_object() || !r.config.contains("options"))
    return {};
  const auto& options = r.config["options"];
  auto it = options.is_object() ? options.find(name) : options.end();
  if (it == options.end() || !it->is_object())
    return {};
  return printable_line(string_or(*it, "value"));
}

const json* section(const json& object, const char* name) {
  if (!object.is_object())
    return nullptr;
  auto it = object.find(name);
  return it != object.end() && it->is_object() && !it->empty() ? &*it : nullptr;
}

/// A figure with the unit that its name ends in.
std::string figure(std::string name, const json& value) {
  auto unit_is = [&](std::string_view unit) {
    if (!name.ends_with(unit) || !value.is_number())
      return false;
    name.resize(name.size() - unit.size());
    return true;
  };
  auto shown = value.is_string()         ? printable_line(value.get<std::string>(), 80)
               : value.is_number_float() ? fmt::format("{:.4g}", value.get<double>())
                                         : printable_line(dump_json(value), 80);
  if (unit_is("_bytes"))
    shown = bytes(value.get<double>());
  else if (unit_is("_us"))
    shown = seconds(value.get<double>() / 1e6);
  else if (unit_is("_ms"))
    shown = seconds(value.get<double>() / 1e3);
  else if (unit_is("_s"))
    shown = seconds(value.get<double>());
  for (auto& c : name)
    c = c == '_' ? ' ' : c;
  return printable_line(name, 40) + " " + shown;
}

std::string figures(const json& object) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : object.items())
    if (value.is_primitive() && !value.is_null())
      parts.push_back(figure(name, value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string utc(std::int64_t at) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                     fmt::gmtime(static_cast<std::time_t>(at / 1'000'000)));
}

void add_heading(table& t, const report& r) {
  auto asked = option_of(r, "model");
  std::vector<std::string> servers;
  for (const auto& m : r.server_models)
    servers.push_back(printable_line(m, 60));
  if (!servers.empty())
    asked += fmt::format("{}({} by the server's word)", asked.empty() ? "" : " ",
                         fmt::join(servers, ", "));
  t.line("model", asked);
  if (auto scorer = option_of(r, "scorer"); true)
    t.line("agent",
           fmt::format("{}, {} at once, scored by {}", option_of(r, "agent"),
                       option_of(r, "max_concurrency"), scorer.empty() ? "nothing" : scorer));
  if (const auto* data = section(r.config, "dataset"))
    t.line("dataset", printable_line(fmt::format("{} (sha256 {})", string_or(*data, "path"),
                                                 string_or(*data, "sha256").substr(0, 12))));
  auto end = r.end.empty() ? std::string{"running, or killed"} : printable_line(r.end);
  if (r.started_at > 0)
    t.line("batch",
           fmt::format("{}; began {}, took {}", end, utc(r.started_at), seconds(r.elapsed_s)));
}

std::string estimate_text(const estimate& e) {
  auto text = fmt::format("{:.3f}", e.mean);
  if (e.standard_error)
    text += fmt::format(" \u00B1 {:.3f}", *e.standard_error);
  if (e.ci95)
    text += fmt::format("  (95 % CI {:.3f} to {:.3f})", e.ci95->low, e.ci95->high);
  return text;
}

void add_accuracy(table& t, const report& r) {
  const auto& a = r.score;
  if (a.errors_excluded.n == 0 && a.errors_as_wrong.n == 0)
    return t.line("accuracy", "nothing was scored");
  auto n = count_of(a.errors_excluded.n, "sample");
  if (a.errors_excluded.n > 0)
    t.line("accuracy", fmt::format("{}, n = {}, {}", estimate_text(a.errors_excluded), n,
                                   count_of(a.epochs, "epoch")));
  if (r.counts.errored > 0)
    t.line(a.errors_excluded.n > 0 ? "" : "accuracy",
           fmt::format("{}, n = {}, with errors as wrong", estimate_text(a.errors_as_wrong),
                       count_of(a.errors_as_wrong.n, "sample")));
  if (a.wilson95)
    t.line("",
           fmt::format("Wilson 95 % interval {:.3f} to {:.3f}", a.wilson95->low, a.wilson95->high));
}

std::string planned(const report& r) {
  auto samples = count_of(r.planned_samples, "sample");
  if (r.planned_epochs == 1)
    return samples;
  return fmt::format("{} of {}", count_of(r.planned_samples * r.planned_epochs, "run"), samples);
}

void add_ends(table& t, const report& r) {
  const auto& c = r.counts;
  t.line("runs",
         fmt::format("{} of {}: {} completed, {} limited, {} errored, {} cancelled; {} unscored",
                     grouped(r.runs), planned(r), c.completed, c.limited, c.errored, c.cancelled,
                     c.unscored));
  std::vector<std::string> ends;
  for (const auto& [end, n] : r.ends)
    ends.push_back(fmt::format("{} {}", printable_line(end, 40), grouped(n)));
  t.line("ends", fmt::format("{}", fmt::join(ends, ", ")));
  for (std::size_t i = 0; i < r.errors.size(); ++i)
    t.line(i == 0 ? "errors" : "",
           fmt::format("{} x {}", r.errors[i].second, printable_line(r.errors[i].first, 120)));
}

void add_model(table& t, const report& r) {
  const auto& w = r.totals;
  auto written = w.tokens.cache_written;
  t.line("tokens", fmt::format("input {} (cached {}{}), output {} (reasoning {}); {:.0f} per run",
                               grouped(w.tokens.input), grouped(w.tokens.cached),
                               written > 0 ? ", put into the cache " + grouped(written) : "",
                               grouped(w.tokens.output), grouped(w.tokens.reasoning),
                               per(w.tokens.total(), r.runs)));
  if (w.tokens.untold > 0)
    t.line("",
           fmt::format("too few: {} told none",
                       w.tokens.untold == 1 ? "1 reply" : grouped(w.tokens.untold) + " replies"));
  t.line("turns", fmt::format("{} ({:.1f} per run), {}", grouped(w.turns), per(w.turns, r.runs),
                              count_of(w.model_attempts, "model request")));
  auto line = [&](std::string_view label, std::string_view what, const spread& s) {
    if (s.n > 0)
      t.line(label, fmt::format("{} {} mean, {} p50, {} p90, {} p99", what, seconds(s.mean / 1e3),
                                seconds(s.p50 / 1e3), seconds(s.p90 / 1e3), seconds(s.p99 / 1e3)));
  };
  line("per turn", "wall", r.turn_wall_ms);
  line("", "model wait", r.turn_model_ms);
  std::string cpu;
  if (r.cpu_us_per_turn)
    cpu = fmt::format("CPU {} of our process", seconds(*r.cpu_us_per_turn / 1e6));
  if (w.turns > 0)
    cpu += fmt::format(
      "{}{} in sandboxes", cpu.empty() ? "CPU " : ", ",
      seconds(static_cast<double>(w.sandbox_cpu.count()) / 1e6 / static_cast<double>(w.turns)));
  t.line("", cpu);
}

void add_sandboxes(table& t, const report& r) {
  const auto& w = r.totals;
  t.line("sandboxes",
         fmt::format("{} opened, {}, {} failed{}, {}", grouped(w.sandboxes),
                     count_of(w.snippets, "snippet"), grouped(w.snippet_failures),
                     ratio(w.snippet_failures, w.snippets), count_of(w.tool_calls, "tool call")));
  if (w.snippets > 0)
    t.line("", fmt::format("per snippet wall {}, CPU {}",
                           seconds(w.sandbox_wall / static_cast<std::int64_t>(w.snippets)),
                           seconds(w.sandbox_cpu / static_cast<std::int64_t>(w.snippets))));
  for (auto name : {"sandboxes", "executor"})
    if (const auto* stats = section(r.stats, name))
      t.line("", figures(*stats));
  if (const auto* executor = section(r.machine, "executor"))
    t.line("isolation", printable_line(string_or(*executor, "isolation"), 400));
}

void add_rest(table& t, const report& r) {
  if (r.elapsed_s > 0)
    t.line("rate", fmt::format("{:.2f} runs/s, {:.1f} turns/s, {:.0f} tokens/s",
                               static_cast<double>(r.runs) / r.elapsed_s,
                               static_cast<double>(r.totals.turns) / r.elapsed_s,
                               static_cast<double>(r.totals.tokens.total()) / r.elapsed_s));
  if (r.stats.is_object())
    for (const auto& [name, value] : r.stats.items())
      if (name != "sandboxes" && name != "executor" && value.is_object())
        t.line(printable_line(name, label_width - 2), figures(value));
  if (r.machine.is_object())
    t.line("machine", figures(r.machine));
}

}  // namespace

std::string to_text(const report& r) {
  table t;
  add_heading(t, r);
  t.gap();
  add_accuracy(t, r);
  add_ends(t, r);
  t.gap();
  add_model(t, r);
  add_sandboxes(t, r);
  t.gap();
  add_rest(t, r);
  return t.finish();
}

}  // namespace troupe
