#include "runtime/eval/report.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

namespace troupe {
namespace {

constexpr std::size_t shown_errors = 5;

json parsed(const std::string& text) {
  auto value = parse_json(text);
  return value ? std::move(*value) : json{};
}

spread spread_of(const std::vector<double>& values) {
  spread s;
  s.n = values.size();
  if (values.empty())
    return s;
  s.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(s.n);
  s.p50 = *percentile(values, 50);
  s.p90 = *percentile(values, 90);
  s.p99 = *percentile(values, 99);
  s.most = *std::max_element(values.begin(), values.end());
  return s;
}

spread per_turn_ms(const std::vector<run_result>& results, micros run_result::*span) {
  std::vector<double> values;
  for (const auto& r : results)
    if (r.turns > 0)
      values.push_back(static_cast<double>((r.*span).count()) / 1e3 / r.turns);
  return spread_of(values);
}

/// The number at a path of object members, in digits or as text, or `otherwise`.
std::size_t count_at(const json& j, std::initializer_list<const char*> path,
                     std::size_t otherwise) {
  const auto* at = &j;
  for (const auto* name : path) {
    auto it = at->is_object() ? at->find(name) : at->end();
    if (it == at->end())
      return otherwise;
    at = &*it;
  }
  std::size_t n = otherwise;
  if (at->is_number_unsigned())
    n = at->get<std::size_t>();
  else if (const auto* text = at->get_ptr<const std::string*>())
    std::from_chars(text->data(), text->data() + text->size(), n);
  return n;
}

void add(work_totals& t, const run_result& r) {
  t.tokens += r.tokens;
  t.turns += r.turns;
  t.model_attempts += r.model_attempts;
  t.tool_calls += r.tool_calls;
  t.snippets += r.snippets;
  t.snippet_failures += r.snippet_failures;
  t.sandboxes += r.sandboxes;
  t.wall += r.wall;
  t.model_wait += r.model_wait;
  t.sandbox_wall += r.sandbox_wall;
  t.sandbox_cpu += r.sandbox_cpu;
}

std::vector<std::pair<std::string, std::uint64_t>>
frequent_errors(const std::vector<run_result>& results) {
  std::map<std::string, std::uint64_t> counts;
  for (const auto& r : results)
    if (class_of(r.end) == end_class::errored)
      ++counts[r.error];
  std::vector<std::pair<std::string, std::uint64_t>> sorted{counts.begin(), counts.end()};
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  sorted.resize(std::min(sorted.size(), shown_errors));
  return sorted;
}

std::optional<double> number_at(const json& object, const char* section, const char* name) {
  if (!object.is_object() || !object.contains(section) || !object[section].is_object())
    return std::nullopt;
  auto it = object[section].find(name);
  return it != object[section].end() && it->is_number() ? std::optional{it->get<double>()}
                                                        : std::nullopt;
}

/// Calls and CPU are of the same session; turns in the journal may be of several.
std::optional<double> process_cpu_per_call(const json& stats) {
  auto user = number_at(stats, "process", "cpu_user_s");
  auto system = number_at(stats, "process", "cpu_system_s");
  auto calls = number_at(stats, "model", "calls");
  if (!user || !system || !calls || *calls <= 0)
    return std::nullopt;
  return (*user + *system) * 1e6 / *calls;
}

double elapsed_seconds(const batch_record& batch, const std::vector<run_result>& results) {
  auto end = batch.ended_at;
  if (end == 0)
    for (const auto& r : results)
      end = std::max(end, r.started_at + r.wall.count());
  return batch.started_at > 0 && end > batch.started_at
           ? static_cast<double>(end - batch.started_at) / 1e6
           : 0;
}

json to_json(const spread& s) {
  if (s.n == 0)
    return nullptr;
  return {{"n", s.n},     {"mean", s.mean}, {"p50", s.p50},
          {"p90", s.p90}, {"p99", s.p99},   {"max", s.most}};
}

json to_json(const std::optional<interval>& i) {
  return i ? json::array({i->low, i->high}) : json{};
}

json to_json(const estimate& e) {
  if (e.n == 0)
    return nullptr;
  return {{"mean", e.mean},
          {"standard_error", e.standard_error ? json(*e.standard_error) : json{}},
          {"ci95", to_json(e.ci95)},
          {"n", e.n}};
}

json totals_json(const work_totals& t) {
  return {{"tokens",
           {{"input", t.tokens.input},
            {"output", t.tokens.output},
            {"cached", t.tokens.cached},
            {"cache_written", t.tokens.cache_written},
            {"reasoning", t.tokens.reasoning},
            {"untold_replies", t.tokens.untold}}},
          {"turns", t.turns},
          {"model_attempts", t.model_attempts},
          {"tool_calls", t.tool_calls},
          {"snippets", t.snippets},
          {"snippet_failures", t.snippet_failures},
          {"sandboxes", t.sandboxes},
          {"wall_s", static_cast<double>(t.wall.count()) / 1e6},
          {"model_wait_s", static_cast<double>(t.model_wait.count()) / 1e6},
          {"sandbox_wall_s", static_cast<double>(t.sandbox_wall.count()) / 1e6},
          {"sandbox_cpu_s", static_cast<double>(t.sandbox_cpu.count()) / 1e6}};
}

}  // namespace

report make_report(const batch_record& batch, const std::vector<run_result>& results) {
  report out;
  out.config = parsed(batch.config);
  out.machine = parsed(batch.machine);
  out.stats = parsed(batch.stats);
  out.end = batch.end;
  out.started_at = batch.started_at;
  out.elapsed_s = elapsed_seconds(batch, results);
  out.runs = results.size();
  std::set<std::string_view> samples, models;
  for (const auto& r : results) {
    samples.insert(r.sample_id);
    if (!r.model.empty())
      models.insert(r.model);
    ++out.ends[r.end];
    add(out.totals, r);
  }
  out.samples = samples.size();
  out.planned_samples = count_at(out.config, {"dataset", "samples"}, samples.size());
  out.planned_epochs = count_at(out.config, {"options", "epochs", "value"}, 1);
  out.server_models.assign(models.begin(), models.end());
  out.score = accuracy_of(results);
  out.counts = count_ends(results);
  out.errors = frequent_errors(results);
  out.turn_wall_ms = per_turn_ms(results, &run_result::wall);
  out.turn_model_ms = per_turn_ms(results, &run_result::model_wait);
  out.cpu_us_per_turn = process_cpu_per_call(out.stats);
  return out;
}

json to_json(const report& r) {
  auto errors = json::array();
  for (const auto& [message, count] : r.errors)
    errors.push_back({{"error", message}, {"count", count}});
  return {
    {"config", r.config},
    {"machine", r.machine},
    {"stats", r.stats},
    {"end", r.end},
    {"started_at_us", r.started_at},
    {"elapsed_s", r.elapsed_s},
    {"runs", r.runs},
    {"samples", r.samples},
    {"planned", r.planned_samples * r.planned_epochs},
    {"epochs", r.score.epochs},
    {"server_models", r.server_models},
    {"accuracy",
     {{"errors_excluded", to_json(r.score.errors_excluded)},
      {"errors_as_wrong", to_json(r.score.errors_as_wrong)},
      {"wilson95", to_json(r.score.wilson95)}}},
    {"counts",
     {{"completed", r.counts.completed},
      {"limited", r.counts.limited},
      {"errored", r.counts.errored},
      {"cancelled", r.counts.cancelled},
      {"unscored", r.counts.unscored}}},
    {"ends", r.ends},
    {"errors", errors},
    {"totals", totals_json(r.totals)},
    {"per_turn",
     {{"wall_ms", to_json(r.turn_wall_ms)},
      {"model_wait_ms", to_json(r.turn_model_ms)},
      {"process_cpu_us", r.cpu_us_per_turn ? json(*r.cpu_us_per_turn) : json{}}}},
    {"runs_per_s", r.elapsed_s > 0 ? json(static_cast<double>(r.runs) / r.elapsed_s) : json{}}};
}

}  // namespace troupe
