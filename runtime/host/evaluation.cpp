#include "runtime/host/evaluation.hpp"

#include "actors/caf_glue.hpp"
#include "executors/spec_check.hpp"
#include "runtime/core/text.hpp"
#include "runtime/eval/scorer.hpp"
#include "runtime/host/assemble.hpp"
#include "runtime/host/batch_identity.hpp"
#include "runtime/host/models.hpp"
#include "runtime/host/team.hpp"

#include <future>
#include <mutex>
#include <set>

#include <sys/resource.h>

namespace troupe {
namespace {

using sample_epoch = std::pair<std::string, std::uint32_t>;

/// What a journal already holds of this batch.
struct earlier_work {
  std::set<sample_epoch> done;
  batch_progress progress;
  std::int64_t started_at = 0;
  spending spent;
};

/// What earlier sessions say they spent, as stats() writes it.
spending spent_before(const std::string& stats) {
  spending out;
  auto parsed = parse_json(stats.empty() ? "{}" : stats);
  auto spent = parsed ? parsed->value("spent", json::object()) : json::object();
  auto number = [&](const char* name) {
    auto it = spent.find(name);
    return it != spent.end() && it->is_number() ? std::max(0.0, it->get<double>()) : 0.0;
  };
  out.calls = static_cast<std::uint64_t>(number("calls"));
  out.money = number("money");
  out.tokens.input = static_cast<std::uint64_t>(number("input_tokens"));
  out.tokens.output = static_cast<std::uint64_t>(number("output_tokens"));
  out.tokens.cached = static_cast<std::uint64_t>(number("cached_tokens"));
  out.tokens.cache_written = static_cast<std::uint64_t>(number("cache_written_tokens"));
  return out;
}

/// A killed session has written no sums, but its results.
void count_killed_session(earlier_work& w, std::uint64_t attempts) {
  if (w.spent.tokens.total() < w.progress.tokens.total())
    w.spent.tokens = w.progress.tokens;
  w.spent.calls = std::max(w.spent.calls, attempts);
}

result<earlier_work> read_earlier(const journal& store, const std::string& path,
                                  const dataset& data, const settings& now,
                                  const std::string& agent) {
  earlier_work w;
  auto record = store.batch();
  if (!record)
    return fail(record.error());
  if (!record->config.empty()) {
    auto config = parse_json(record->config);
    auto hash = config ? string_or(config->value("dataset", json::object()), "sha256") : "";
    if (hash != data.sha256)
      return fail(errc::invalid_argument,
                  "'" + path + "' holds results of another dataset than '" + data.path
                    + "' as it is now; give another --out, or put the dataset back");
    auto same = check_same_options(config->value("options", json::object()), to_json(now), path,
                                   config->contains(agent_digest_key));
    if (same)
      same = check_same_agent(*config, agent, path);
    if (!same)
      return fail(same.error());
    w.started_at = record->started_at;
    w.spent = spent_before(record->stats);
  }
  auto results = store.results();
  if (!results)
    return fail(results.error());
  std::uint64_t attempts = 0;
  for (const auto& r : *results) {
    if (now.batch.retry_errors && r.end == to_string(run_end::error))
      continue;  // the journal forgets it once this session begins
    w.done.emplace(r.sample_id, r.epoch);
    attempts += r.model_attempts;
    ++w.progress.done;
    w.progress.tokens += r.tokens;
    if (r.end != to_string(run_end::success))
      ++w.progress.failed;
    if (r.score) {
      ++w.progress.scored;
      w.progress.score_sum += *r.score;
    }
  }
  count_killed_session(w, attempts);
  return w;
}

json process_stats() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {{"cpu_user_s", seconds(use.ru_utime)},
          {"cpu_system_s", seconds(use.ru_stime)},
          {"max_rss_bytes", static_cast<std::uint64_t>(use.ru_maxrss) * 1024}};
}

}  // namespace

struct evaluation::impl {
  evaluation_request request;
  std::unique_ptr<engine> host;
  caf::actor batch;
  batch_record record;
  std::optional<scorer_options> judge;
  bool priced = false;  ///< the model asked for has a price

  std::mutex mutex;  // guards outcome and told
  evaluation_outcome outcome;
  bool told = false;
  std::promise<void> ended;

  /// Of a batch they are in the journal; a few are handed back too.
  [[nodiscard]] bool keeps_results() const {
    return request.journal_path.empty() || request.data.samples.size() == 1;
  }

  [[nodiscard]] const sample& sample_of(const batch_item& i) const {
    return request.data.samples[i.index];
  }

  batch_plan plan(const earlier_work& before);
  result<void> choose_scorer();
  result<void> check_files() const;
  result<void> begin();
  void tell(std::string end, std::string detail, const batch_progress& progress);
  json stats() const;
};

void evaluation::impl::tell(std::string end, std::string detail, const batch_progress& progress) {
  {
    std::lock_guard lock{mutex};
    if (std::exchange(told, true))
      return;
    outcome.end = std::move(end);
    outcome.detail = std::move(detail);
    outcome.progress = progress;
  }
  ended.set_value();
  if (request.finished)
    request.finished();
}

batch_plan evaluation::impl::plan(const earlier_work& before) {
  const auto& o = request.options;
  batch_plan p;
  p.max_concurrency = o.batch.max_concurrency;
  p.before = before.progress;
  for (std::uint32_t epoch = 1; epoch <= o.batch.epochs; ++epoch)
    for (std::size_t i = 0; i < request.data.samples.size(); ++i)
      if (!before.done.contains({request.data.samples[i].id, epoch}))
        p.items.push_back({request.data.samples[i].id, epoch, i});
  p.before.total = before.progress.done + p.items.size();
  p.input = [this](const batch_item& item) {
    const auto& s = sample_of(item);
    std::vector<sandbox_file> files;
    for (const auto& f : s.files)
      files.push_back({f.path, *f.bytes});
    return std::pair{run_started{.task = s.input, .history = s.history, .images = s.images},
                     std::move(files)};
  };
  p.score = [this](const batch_item& item, run_result& r) {
    if (judge) {
      auto answered = !r.answer.empty() || !r.answer_value.is_null();
      auto says = score_run(*judge, r.end,
                            answered ? std::optional<std::string_view>{r.answer} : std::nullopt,
                            sample_of(item).targets);
      r.score = says.score;
      r.score_note = std::move(says.note);
    }
    if (keeps_results()) {
      std::lock_guard lock{mutex};
      outcome.results.push_back(r);
    }
  };
  // One task's result says by itself that its budget was spent.
  if (!keeps_results())
    p.exhausted = [this] { return host->budget().exhausted(); };
  p.done = [this](const batch_outcome& end) {
    tell(std::string{to_string(end.end)}, end.detail, end.progress);
  };
  return p;
}

/// A dataset none of whose targets can be read is found before anything is spent on it.
result<void> evaluation::impl::choose_scorer() {
  const auto& o = request.options.batch;
  if (o.scorer.empty())
    return {};
  auto kind = scorer_from(o.scorer);
  if (!kind)
    return fail(kind.error());
  scorer_options chosen;
  chosen.kind = *kind;
  chosen.tolerance.relative = o.tolerance;
  chosen.ignore_case = o.ignore_case;
  result<void> readable = {};
  for (const auto& s : request.data.samples)
    if (readable = check_targets(chosen, s.targets); readable)
      break;
  if (!readable)
    return fail(errc::invalid_argument, "no target in '" + request.data.path + "' fits the scorer '"
                                          + o.scorer + "': " + readable.error().detail);
  judge = chosen;
  return {};
}

/// Files are put where code can read them.
result<void> evaluation::impl::check_files() const {
  for (const auto& s : request.data.samples)
    if (!s.files.empty())
      return fail(errc::invalid_argument,
                  "sample '" + s.id + "' in '" + request.data.path
                    + "' has files, and a tool-calling agent has no sandbox to put them in; use "
                      "--agent code");
  return {};
}

namespace {

/// What --approve asks for, as a hook; null when nothing has to be allowed.
/// Errors  invalid_argument: nobody to ask; --approve-for names nothing that the agent may do.
result<std::shared_ptr<const std::vector<run_hook>>>
approval_from(const settings& s, const agent_options& agent, const approver& ask) {
  if (s.agent.approve == "auto")
    return std::shared_ptr<const std::vector<run_hook>>{};
  if (s.agent.approve == "ask" && !ask)
    return fail(errc::invalid_argument,
                "approve: 'ask' needs somebody to answer; use troupe run, or deny");
  std::vector<std::string> known{"*", "code"};
  for (const auto* tools : {&agent.tools, &agent.managed})
    for (const auto& tool : *tools)
      known.push_back(tool.name);
  for (const auto& what : s.agent.approve_for)
    if (std::find(known.begin(), known.end(), what) == known.end())
      return fail(errc::invalid_argument, "approve_for: the agent has no tool '" + what + "'"
                                            + did_you_mean(what, {known.begin(), known.end()}));
  auto how = s.agent.approve == "ask" ? approval::ask : approval::deny;
  return std::make_shared<const std::vector<run_hook>>(
    std::vector<run_hook>{approval_hook({how, s.agent.approve_for}, ask)});
}

}  // namespace

result<void> evaluation::impl::begin() {
  const auto& o = request.options;
  if (auto chosen = choose_scorer(); !chosen)
    return chosen;
  if (kind_from(o) != agent_kind::code && !o.agent.share_sandbox)
    if (auto none = check_files(); !none)
      return none;
  auto tools = tools_from(o);
  if (!tools)
    return fail(tools.error());
  auto profile = profile_from(o);
  if (!profile)
    return fail(profile.error());
  auto team = read_team(o, request.env);
  if (!team)
    return fail(team.error());
  const auto needs_sandbox = kind_from(o) == agent_kind::code || writes_code(*team);
  auto agent = agent_from(o, **tools, profile->imports, request.env, managed_tools(*team));
  if (!agent)
    return fail(agent.error());
  auto box = sandbox_from(*profile, **tools);
  if (auto fits = check_spec(box, {profile->profile.name}); !fits)
    return fits;
  auto boxes = needs_sandbox ? executor_from(o, profile->profile)
                             : result<engine::make_executor>{engine::make_executor{}};
  if (!boxes)
    return fail(boxes.error());

  auto sizes =
    engine_options_from(o, profile->profile, request.env, static_cast<bool>(request.events));
  auto model = model_from(o, request.env);
  if (!model)
    return fail(model.error());
  auto price_now = model->endpoints.front().cost;
  priced = price_now.has_value();
  sizes.models.push_back(*std::move(model));
  if (auto found = find_models(*team, request.env); !found)
    return found;
  auto hooks = approval_from(o, (*agent)->options, request.approve);
  if (!hooks)
    return fail(hooks.error());
  sizes.hooks = *std::move(hooks);
  if (auto added = add_budget(o, sizes); !added)
    return added;
  auto identity = digest_of_agents(**agent, *team);
  earlier_work before;
  std::unique_ptr<journal> store;
  if (!request.journal_path.empty()) {
    auto opened = journal::open(request.journal_path);
    if (!opened)
      return fail(opened.error());
    store = std::move(*opened);
    auto earlier = read_earlier(*store, request.journal_path, request.data, o, identity);
    if (!earlier)
      return fail(earlier.error());
    before = std::move(*earlier);
  }
  auto shelf = shelf_from(o, request.env);
  if (!shelf)
    return fail(shelf.error());
  sizes.shelf = *std::move(shelf);
  auto started = engine::start(std::move(sizes), *boxes, std::move(store), [this](const error& e) {
    tell("failed", "the runtime gave up: " + e.detail, {});
  });
  if (!started)
    return fail(started.error());
  host = std::move(*started);
  if (auto works = needs_sandbox ? try_sandbox(*host->backend(), box) : result<void>{}; !works)
    return fail(works.error().code, "no sandbox can be opened: " + works.error().detail);

  if (price_now)
    before.spent.money = std::max(before.spent.money, price_now->of(before.progress.tokens));
  host->budget().carry(before.spent);
  auto p = plan(before);
  job_options job;
  job.run_budget = run_budget_from(o);
  auto members = start_team(*host, *team);
  if (!members)
    return fail(members.error());
  auto shared = sandbox_of_team(std::move(box), (*agent)->options, *members);
  if (!shared)
    return fail(shared.error());
  p.agent =
    host->make_context(std::move(*agent), *tools, *std::move(shared), job, *std::move(members));

  if (request.unwanted && request.unwanted())
    return fail(errc::cancelled, "interrupted before anything was run");

  record.started_at = before.started_at != 0 ? before.started_at : wall_micros();
  record.config = dump_json({{"options", to_json(o)},
                             {"dataset",
                              {{"path", request.data.path},
                               {"sha256", request.data.sha256},
                               {"samples", request.data.samples.size()},
                               {"bad_lines", request.data.bad_lines}}},
                             {agent_digest_key, identity}});
  record.machine = dump_json(machine_record(host->backend()));
  record.forget_errors = o.batch.retry_errors;
  if (auto* thread = host->store()) {
    if (auto put = thread->put_batch(record, {}); !put)
      return fail(put.error());
    thread->flush_blocking();
  }
  record.forget_errors = false;
  if (request.progress || request.events)
    host->watch({"command line", request.events, request.progress});
  batch = host->start_batch(std::move(p));
  batch->attach_functor([this](const caf::error& why) {  // after `done` there is nothing to tell
    tell("failed", "the batch ended: " + glue::from_caf(why).detail, {});
  });
  return {};
}

json evaluation::impl::stats() const {
  const auto& m = host->model_stats();
  const auto& shelf = host->shelf_stats();
  const auto& b = host->pool_stats();
  auto http = host->http_stats();
  json out{{"process", process_stats()},
           {"model",
            {{"calls", m.calls.load()},
             {"attempts", m.attempts.load()},
             {"retries", m.retries.load()},
             {"rate_limited", m.rate_limited.load()},
             {"waits", m.waits.load()},
             {"waited_ms", m.waited_us.load() / 1000},
             {"failovers", m.failovers.load()},
             {"fallbacks", m.fallbacks.load()},
             {"failures", m.failures.load()}}},
           {"http",
            {{"requests", http.requests},
             {"connections_opened", http.connections_opened},
             {"stale_retries", http.stale_retries}}},
           {"sandboxes",
            {{"opened", b.opened.load()},
             {"open_failures", b.open_failures.load()},
             {"closed_clean", b.closed_clean.load()},
             {"closed_unclean", b.closed_unclean.load()},
             {"peak", b.peak.load()}}}};
  auto spent = host->budget().spent();
  out["spent"] = {{"calls", spent.calls},
                  {"input_tokens", spent.tokens.input},
                  {"output_tokens", spent.tokens.output},
                  {"cached_tokens", spent.tokens.cached},
                  {"cache_written_tokens", spent.tokens.cache_written},
                  {"currency", host->budget().currency()}};
  if (priced)
    out["spent"]["money"] = spent.money;
  else
    out["spent"]["price"] = "unknown";
  if (shelf.found + shelf.asked > 0)
    out["shelf"] = {{"found", shelf.found.load()},
                    {"shared", shelf.shared.load()},
                    {"asked", shelf.asked.load()}};
  if (auto* backend = host->backend()) {
    auto e = backend->stats();
    if (e.opened > 0)
      out["sandboxes"]["open_mean_ms"] =
        static_cast<double>(e.open_total.count()) / 1000.0 / static_cast<double>(e.opened);
    if (e.closed > 0)
      out["sandboxes"]["teardown_mean_ms"] =
        static_cast<double>(e.teardown_total.count()) / 1000.0 / static_cast<double>(e.closed);
  }
  if (auto* thread = host->store()) {
    auto j = thread->stats();
    out["journal"] = {{"events", j.events}, {"commits", j.commits}, {"failures", j.failures}};
  }
  return out;
}

result<std::unique_ptr<evaluation>> evaluation::start(evaluation_request request) {
  auto parts = std::make_unique<impl>();
  parts->request = std::move(request);
  if (auto begun = parts->begin(); !begun)
    return fail(begun.error());
  return std::unique_ptr<evaluation>{new evaluation{std::move(parts)}};
}

evaluation::evaluation(std::unique_ptr<impl> i) : impl_{std::move(i)} {}

evaluation::~evaluation() {
  if (impl_) {  // the runtime first: its end may still tell us things
    impl_->batch = nullptr;
    impl_->host.reset();
  }
}

void evaluation::tune(const settings& limits) {
  impl_->host->tune(limits_from(limits));
}

void evaluation::stop() {
  caf::anon_send(impl_->batch, batch_stop{});
}

void evaluation::cancel(const std::string& reason) {
  caf::anon_send(impl_->batch, batch_cancel{reason});
}

evaluation_outcome evaluation::wait() {
  auto& p = *impl_;
  p.ended.get_future().wait();
  p.batch = nullptr;
  p.host->stop_tree();  // first: the record counts the last sandbox's teardown too
  if (auto* thread = p.host->store()) {
    p.record.ended_at = wall_micros();
    p.record.machine = dump_json(machine_record(p.host->backend()));  // now the isolation is known
    p.record.end = p.outcome.end;
    p.record.stats = dump_json(p.stats());
    if (auto put = thread->put_batch(p.record, {}); put)
      thread->flush_blocking();
  }
  p.host.reset();
  std::lock_guard lock{p.mutex};
  return std::move(p.outcome);
}

}  // namespace troupe
