#include "runtime/host/engine.hpp"

#include "actors/address.hpp"
#include "actors/caf_glue.hpp"
#include "actors/event_hub.hpp"
#include "actors/journal_writer.hpp"
#include "actors/tool_dispatcher.hpp"
#include "actors/tool_host.hpp"
#include "runtime/agent/react_loop.hpp"
#include "runtime/core/log.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>

namespace troupe {
namespace {

/// Appends what supervisors decide to the journal, as events of run 0.
class supervision_log {
public:
  explicit supervision_log(journal_thread* store, std::uint32_t events_before)
    : store_{store}, seq_{events_before} {}

  void operator()(const supervision_report& r) {
    auto line = r.supervisor + ": " + r.child + " " + r.decision
                + (r.reason.empty() ? "" : " (" + r.reason + ")");
    if (r.decision == "started" || r.decision == "stopped")
      log::debug(line);
    else
      log::warn(line);
    if (!store_)
      return;
    journal_entry entry;
    entry.events.push_back({run_id{0}, ++seq_, wall_micros(), "supervision",
                            dump_json({{"supervisor", r.supervisor},
                                       {"child", r.child},
                                       {"reason", r.reason},
                                       {"decision", r.decision}})});
    if (auto taken = store_->append(std::move(entry), {}); !taken)
      log::warn("a supervision event was not kept: " + taken.error().detail);
  }

private:
  journal_thread* store_;
  std::atomic<std::uint32_t> seq_;
};

child_spec permanent(std::string name, std::shared_ptr<address> where,
                     std::function<caf::actor(caf::actor_system&)> start) {
  child_spec spec;
  spec.name = std::move(name);
  spec.start = std::move(start);
  spec.where = std::move(where);
  return spec;
}

bool asked_at(const std::vector<run_hook>& hooks, hook_point at) {
  return std::ranges::any_of(
    hooks, [at](auto& hook) { return std::ranges::find(hook.points, at) != hook.points.end(); });
}

/// A model and where its actors are.
struct placed_model {
  engine_model what;
  std::string number;  ///< of its actors' names
  std::vector<model_route> routes{};
  std::shared_ptr<address> client = std::make_shared<address>();
  std::shared_ptr<address> keeper = std::make_shared<address>();
};

using placed = std::shared_ptr<placed_model>;

/// A run's history is kept in the wire form of the model that it began with.
result<placed> place(engine_model model, std::size_t at, http_client& http, reactor& io) {
  auto out = std::make_shared<placed_model>();
  out->what = std::move(model);
  out->number = at == 0 ? "" : "-" + std::to_string(at + 1);
  for (auto& e : out->what.endpoints) {
    auto made = e.make(http, io);
    if (!made)
      return fail(made.error());
    out->routes.push_back({std::move(*made), e.name, e.model, e.choice, e.cost});
    if (out->routes.back().where->encoder() != out->routes.front().where->encoder())
      return fail(errc::invalid_argument,
                  "'" + e.name
                    + "' speaks another wire format than the model asked for; choose a "
                      "fallback that speaks the same");
  }
  return out;
}

/// Waits for an actor that is being started.
bool appears(const address& where) {
  auto begun = steady_clock::now();
  while (!where.get() && steady_clock::now() - begun < std::chrono::seconds{10})
    std::this_thread::yield();
  return where.get() != nullptr;
}

}  // namespace

// Members are in the order of their making; the destructor of runtime ends them in reverse.
struct engine::impl {
  explicit impl(engine_options o)
    : options{std::move(o)},
      budget{std::make_shared<budget_account>(std::make_shared<budget_ledger>(options.currency),
                                              options.budget, "the batch")} {}

  engine_options options;
  std::shared_ptr<budget_account> budget;
  reactor io;
  std::unique_ptr<http_client> http;
  mutable std::mutex adding;   // guards models, and what.client of each
  std::vector<placed> models;  ///< the first is of the model asked for
  std::shared_ptr<executor> box_maker;
  std::unique_ptr<journal_thread> store;
  std::shared_ptr<supervision_log> reports;

  std::shared_ptr<address> models_at = std::make_shared<address>();
  std::shared_ptr<address> executor_at = std::make_shared<address>();
  std::shared_ptr<address> journal_at = std::make_shared<address>();
  std::shared_ptr<address> hub_at = std::make_shared<address>();
  std::shared_ptr<address> agents_at = std::make_shared<address>();
  std::shared_ptr<address> runs_at = std::make_shared<address>();
  std::vector<std::shared_ptr<address>> tool_hosts_at;
  std::shared_ptr<address> dispatcher_at;  ///< empty unless tools may block
  std::shared_ptr<hub_interest> interest = std::make_shared<hub_interest>();
  std::shared_ptr<model_client_stats> model_stats = std::make_shared<model_client_stats>();
  std::shared_ptr<reply_keeper_stats> shelf_stats = std::make_shared<reply_keeper_stats>();
  std::shared_ptr<executor_pool_stats> pool_stats = std::make_shared<executor_pool_stats>();

  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;
  caf::actor root;
  std::promise<void> root_ended;
  std::shared_ptr<run_numbers> numbers = std::make_shared<run_numbers>();
  std::atomic<std::uint64_t> jobs{0};  ///< contexts made: the batches of each take turns
  std::atomic<bool> stopping{false};
  bool tree_ended = false;

  supervisor_options group(std::string name, std::vector<child_spec> children) const {
    supervisor_options o;
    o.name = std::move(name);
    o.children = std::move(children);
    o.report = [log = reports](const supervision_report& r) { (*log)(r); };
    return o;
  }

  /// A supervisor as a child: it gets the time its own children need.
  child_spec supervisor_child(supervisor_options o, std::shared_ptr<address> where = nullptr) {
    child_spec spec;
    spec.name = o.name;
    spec.where = std::move(where);
    spec.shutdown = millis{-1};
    spec.start = [this, o = std::move(o)](caf::actor_system& sys) {
      return spawn_supervisor(sys, o, io);
    };
    return spec;
  }

  /// Whom a run asks.
  [[nodiscard]] const std::shared_ptr<address>& asked(const placed& model) const {
    return options.shelf ? model->keeper : model->client;
  }

  [[nodiscard]] placed model(std::size_t at) const {
    std::lock_guard lock{adding};
    return models.at(at);
  }

  std::vector<child_spec> actors_of(const placed& model);
  child_spec models_group();
  std::vector<child_spec> tree();
  void start_root(std::function<void(error)> fatal);
};

std::vector<child_spec> engine::impl::actors_of(const placed& model) {
  std::vector<child_spec> out;
  out.push_back(
    permanent("model_client" + model->number, model->client, [this, model](caf::actor_system& sys) {
      std::lock_guard lock{adding};
      return spawn_model_client(sys, model->routes, model->what.client, model_stats, io);
    }));
  if (options.shelf)
    out.push_back(permanent("reply_keeper" + model->number, model->keeper,
                            [this, model](caf::actor_system& sys) {
                              return spawn_reply_keeper(sys, model->client, options.shelf,
                                                        model->what.keeper, shelf_stats, io);
                            }));
  return out;
}

/// Started again it has those that were added, too.
child_spec engine::impl::models_group() {
  auto spec = supervisor_child(group("models", {}), models_at);
  spec.start = [this](caf::actor_system& sys) {
    std::vector<placed> all;
    {
      std::lock_guard lock{adding};
      all = models;
    }
    std::vector<child_spec> children;
    for (auto& model : all)
      for (auto& child : actors_of(model))
        children.push_back(std::move(child));
    return spawn_supervisor(sys, group("models", std::move(children)), io);
  };
  return spec;
}

std::vector<child_spec> engine::impl::tree() {
  std::vector<child_spec> children;
  if (store)
    children.push_back(permanent("journal_writer", journal_at, [this](caf::actor_system& sys) {
      return spawn_journal_writer(sys, *store);
    }));
  children.push_back(permanent("event_hub", hub_at, [this](caf::actor_system& sys) {
    return spawn_event_hub(sys, interest);
  }));
  children.push_back(models_group());

  std::vector<child_spec> hosts;
  for (std::size_t i = 0; i < options.tool_hosts; ++i) {
    tool_hosts_at.push_back(std::make_shared<address>());
    hosts.push_back(permanent("tool_host-" + std::to_string(i + 1), tool_hosts_at.back(),
                              [block = options.tools_may_block](caf::actor_system& sys) {
                                return spawn_tool_host(sys, block);
                              }));
  }
  if (options.tools_may_block) {
    dispatcher_at = std::make_shared<address>();
    hosts.push_back(permanent("tool_dispatcher", dispatcher_at, [this](caf::actor_system& sys) {
      return spawn_tool_dispatcher(sys, tool_hosts_at, io);
    }));
  }
  children.push_back(supervisor_child(group("tools", std::move(hosts))));

  if (box_maker) {
    auto pool = permanent("executor_pool", executor_at, [this](caf::actor_system& sys) {
      return spawn_executor_pool(sys, box_maker, options.pool, pool_stats);
    });
    pool.shutdown = options.shutdown / 2;  // it waits until its sandboxes are verified gone
    children.push_back(supervisor_child(group("executors", {std::move(pool)})));
  }

  auto agents = group("agents", {});
  agents.how = strategy::simple_one_for_one;
  children.push_back(supervisor_child(std::move(agents), agents_at));
  if (options.runs) {
    auto runs = permanent("runs", runs_at, [this](caf::actor_system& sys) {
      return spawn_runs(sys, agents_at, *options.runs);
    });
    runs.shutdown = options.shutdown / 2;  // until the runs that it cancels have ended
    children.push_back(std::move(runs));
  }
  return children;
}

void engine::impl::start_root(std::function<void(error)> fatal) {
  glue::init_types();
  auto threads = options.worker_threads != 0 ? options.worker_threads
                                             : std::max(1u, std::thread::hardware_concurrency());
  glue::configure(config, threads);
  system = std::make_unique<caf::actor_system>(config);
  root = spawn_supervisor(*system, group("root", tree()), io);
  root->attach_functor([this, fatal = std::move(fatal)](const caf::error& why) {
    if (!stopping && fatal)
      fatal(glue::from_caf(why));
    root_ended.set_value();
  });
}

result<std::unique_ptr<engine>> engine::start(engine_options options, const make_executor& executor,
                                              std::unique_ptr<journal> store,
                                              std::function<void(error)> fatal) {
  auto parts = std::make_unique<impl>(std::move(options));
  parts->http = std::make_unique<http_client>(parts->io, parts->options.http);
  for (auto& model : parts->options.models) {
    if (parts->options.shelf)
      parts->options.shelf->hide(model.secrets);
    auto made = place(std::move(model), parts->models.size(), *parts->http, parts->io);
    if (!made)
      return fail(made.error());
    parts->models.push_back(*std::move(made));
  }
  if (executor) {
    auto backend = executor(parts->io);
    if (!backend)
      return fail(backend.error());
    parts->box_maker = std::move(*backend);
  }
  std::uint32_t reports_before = 0;
  if (store) {
    auto events = store->events(run_id{0});
    if (!events)
      return fail(events.error());
    reports_before = events->empty() ? 0 : events->back().seq;
    auto last = store->last_run();
    if (!last)
      return fail(last.error());
    parts->numbers = std::make_shared<run_numbers>(run_id{last->value + 1});
    parts->store = std::make_unique<journal_thread>(std::move(store));
  }
  parts->reports = std::make_shared<supervision_log>(parts->store.get(), reports_before);
  parts->start_root(std::move(fatal));
  auto out = std::unique_ptr<engine>{new engine{std::move(parts)}};
  // The tree starts through mailboxes: whoever holds a runtime finds its actors there.
  if (!appears(out->impl_->options.runs ? *out->impl_->runs_at : *out->impl_->agents_at))
    return fail(errc::unavailable, "the supervision tree did not start within 10 s");
  return out;
}

engine::engine(std::unique_ptr<impl> i) : impl_{std::move(i)} {}

void engine::stop_tree() {
  auto& p = *impl_;
  if (p.stopping.exchange(true))
    return;
  auto ended = p.root_ended.get_future();
  glue::post(p.root, stop{});
  p.tree_ended = ended.wait_for(p.options.shutdown) == std::future_status::ready;
  p.root = nullptr;  // not before: nobody else holds it, and an actor without holders just ends
}

engine::~engine() {
  stop_tree();
  auto& p = *impl_;
  if (!p.tree_ended) {
    // An actor that does not end would hold the actor system's destructor for ever: the process
    // goes on to its exit without it, and says so.
    log::error("the runtime did not stop in time; it is abandoned");
    if (p.store)
      p.store->stop();
    p.io.stop();
    static_cast<void>(impl_.release());
    return;
  }
  for (auto& cell : p.tool_hosts_at)
    cell->set(nullptr);
  if (p.dispatcher_at)
    p.dispatcher_at->set(nullptr);
  for (auto& model : p.models)
    for (auto* cell : {&model->client, &model->keeper})
      (*cell)->set(nullptr);
  for (auto* cell :
       {&p.models_at, &p.executor_at, &p.journal_at, &p.hub_at, &p.agents_at, &p.runs_at})
    (*cell)->set(nullptr);
  p.system.reset();
  if (p.store)
    p.store->stop();
  p.box_maker.reset();
  p.models.clear();
  p.http.reset();
  p.io.stop();
}

result<std::size_t> engine::add_model(engine_model model) {
  auto& p = *impl_;
  placed added;
  std::size_t at = 0;
  {
    std::lock_guard lock{p.adding};
    for (; at < p.models.size(); ++at)
      if (!model.key.empty() && p.models[at]->what.key == model.key)
        return at;
    if (p.options.shelf)
      p.options.shelf->hide(model.secrets);
    auto made = place(std::move(model), at, *p.http, p.io);
    if (!made)
      return fail(made.error());
    added = *made;
    p.models.push_back(added);
  }
  for (auto& child : p.actors_of(added))
    glue::post(p.models_at->get(), start_child{std::move(child), nullptr});
  if (!appears(*p.asked(added)))
    return fail(errc::unavailable, "the client of another model did not start within 10 s");
  return at;
}

std::shared_ptr<const agent_context>
engine::make_context(std::shared_ptr<const agent_definition> agent,
                     std::shared_ptr<const tool_set> tools, sandbox_spec sandbox,
                     const job_options& job, std::vector<managed_agent> team) const {
  auto c = std::make_shared<agent_context>();
  auto model = impl_->model(job.model);
  c->encode = model->routes.front().where->encoder();
  c->start = react_loop::start_of(*agent, c->encode);
  c->agent = std::move(agent);
  c->tools = std::move(tools);
  c->model = impl_->asked(model);
  if (impl_->box_maker)
    c->executor = impl_->executor_at;
  if (impl_->store)
    c->journal = impl_->journal_at;
  c->hub = impl_->hub_at;
  c->interest = impl_->interest;
  c->tool_hosts = impl_->tool_hosts_at;
  if (impl_->dispatcher_at)
    c->tool_hosts = {impl_->dispatcher_at};
  c->sandbox = std::move(sandbox);
  c->clock = &impl_->io;
  c->budget = impl_->budget;
  if (job.budget.any())
    c->budget = std::make_shared<budget_account>(c->budget, job.budget, "the job");
  c->run_budget = job.run_budget;
  c->job = {++impl_->jobs, job.weight};
  c->agents = impl_->agents_at;
  c->numbers = impl_->numbers;
  for (auto& member : team) {
    c->levels = std::max(c->levels, member.agent->levels + 1);
    if (c->agent->options.kind == agent_kind::code)
      c->sandbox.tools.push_back(member.tool);
  }
  c->team = std::move(team);
  c->hooks = impl_->options.hooks;
  // Whoever is asked about a tool may take his time.
  if (c->hooks && asked_at(*c->hooks, hook_point::before_tool))
    for (auto& tool : c->sandbox.tools)
      tool.own_time = true;
  return c;
}

caf::actor engine::start_batch(batch_plan plan) {
  return spawn_batch(*impl_->system, std::move(plan), impl_->agents_at->get());
}

caf::actor engine::runs() const {
  return impl_->runs_at->get();
}

void engine::watch(subscribe viewer) {
  if (viewer.events)
    impl_->interest->events = true;  // now, not when the hub hears of it: the first events count
  glue::post(impl_->hub_at->get(), std::move(viewer));
}

journal_thread* engine::store() const noexcept {
  return impl_->store.get();
}

void engine::tune(const model_tune& limits) {
  auto first = impl_->model(0);
  {
    std::lock_guard lock{impl_->adding};
    auto& o = first->what.client;
    o.rates = limits.rates.value_or(o.rates);
    o.max_in_flight = limits.max_in_flight.value_or(o.max_in_flight);
  }
  glue::post(first->client->get(), limits);
}

run_numbers& engine::numbers() const noexcept {
  return *impl_->numbers;
}

budget_account& engine::budget() const noexcept {
  return *impl_->budget;
}

const model_client_stats& engine::model_stats() const noexcept {
  return *impl_->model_stats;
}

const reply_keeper_stats& engine::shelf_stats() const noexcept {
  return *impl_->shelf_stats;
}

const executor_pool_stats& engine::pool_stats() const noexcept {
  return *impl_->pool_stats;
}

http_client_stats engine::http_stats() const {
  return impl_->http->stats();
}

executor* engine::backend() const noexcept {
  return impl_->box_maker.get();
}

}  // namespace troupe
