#pragma once
// The composition root: makes every part once, hands each what it needs, ends them in reverse.

#include "actors/agent.hpp"
#include "actors/batch.hpp"
#include "actors/endpoint.hpp"
#include "actors/executor_pool.hpp"
#include "actors/model_client.hpp"
#include "actors/reply_keeper.hpp"
#include "actors/runs.hpp"
#include "actors/supervisor.hpp"
#include "runtime/journal/journal_thread.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/reactor.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

using endpoint_maker = std::function<result<std::shared_ptr<endpoint>>(http_client&, timers&)>;

/// An endpoint of the model asked for, or (choice > 0) one of a fallback model.
struct model_endpoint {
  endpoint_maker make;
  std::string name{};        ///< for messages
  std::string model{};       ///< a fallback's own name
  std::uint32_t choice = 0;  ///< as in model_route
  std::optional<price> cost{};
};

/// A model that agents ask, with its fallbacks: one client in front of all its endpoints.
struct engine_model {
  std::vector<model_endpoint> endpoints;  ///< the first is of the model asked for
  model_client_options client{};
  reply_keeper_options keeper{};       ///< of the engine's shelf
  std::vector<std::string> secrets{};  ///< of its requests, hidden in the shelf
  std::string key{};                   ///< the same model has the same; empty: it is no other's
};

/// What an engine is made of. The parts themselves may be replaced: benches and tests bring their
/// own executor or endpoint.
struct engine_options {
  std::size_t worker_threads = 0;      ///< of the actor system; 0: as many as cores
  std::size_t tool_hosts = 4;          ///< native tool calls at once
  bool tools_may_block = false;        ///< each host has a thread of its own
  std::optional<runs_options> runs{};  ///< of submitted runs; empty: there are none
  http_client_limits http;
  std::vector<engine_model> models;    ///< at least one; more may be added later
  std::shared_ptr<reply_shelf> shelf;  ///< in front of all models, thread-safe; null: none
  budget_limits budget{};              ///< of everything that this engine does, all jobs
  std::string currency = "USD";
  executor_pool_options pool;
  std::shared_ptr<const std::vector<run_hook>> hooks;  ///< of all runs; valid; null: none
  millis shutdown{20'000};  ///< from `stop` to giving up on an orderly end
};

/// One evaluation or session of several within a runtime.
struct job_options {
  double weight = 1;           ///< its turns at a model against the other jobs' that wait; above 0
  budget_limits budget{};      ///< of all its runs together, and within the runtime's
  budget_limits run_budget{};  ///< of each of its runs, and within the job's
  std::size_t model = 0;       ///< which of the engine's it asks
};

/// Owns threads, sockets, sandboxes and the supervision tree. Resource; one per process is enough,
/// several may live side by side.
class engine {
public:
  using make_executor = std::function<result<std::shared_ptr<executor>>(reactor&)>;

  /// `store` may be null: nothing is kept. `make_executor` may be empty: snippets cannot run.
  /// `fatal` is called once, on any thread, when the root supervisor gives up.
  static result<std::unique_ptr<engine>> start(engine_options options,
                                               const make_executor& executor,
                                               std::unique_ptr<journal> store,
                                               std::function<void(error)> fatal);

  /// Ends the supervision tree in reverse order of its start: runs are cancelled, every sandbox is
  /// verified gone. The journal's thread goes on, so that the end can be recorded. Blocks at most
  /// `shutdown`, logs what did not end in time. Idempotent.
  void stop_tree();

  /// stop_tree(), then everything else.
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// One more model for jobs: its place, or that of the one that has the same key already.
  /// Errors  invalid_argument: its endpoints speak several wire formats; those of making one;
  ///         unavailable: its client did not start.
  [[nodiscard]] result<std::size_t> add_model(engine_model model);

  /// What the runs of one job need. `tools` are called by native hosts of this runtime. A run whose
  /// own budget is spent ends as `budget`; the job's other runs go on. `team` are the agents that
  /// it manages, those of `agent`'s options, made of contexts of this runtime.
  [[nodiscard]] std::shared_ptr<const agent_context>
  make_context(std::shared_ptr<const agent_definition> agent, std::shared_ptr<const tool_set> tools,
               sandbox_spec sandbox, const job_options& job = {},
               std::vector<managed_agent> team = {}) const;

  /// Starts a batch; `plan.done` hears its end.
  [[nodiscard]] caf::actor start_batch(batch_plan plan);

  /// Where `runs` is reached, when the options have it.
  [[nodiscard]] caf::actor runs() const;

  /// Adds a viewer of run events or progress.
  void watch(subscribe viewer);

  /// The journal's thread, or null.
  [[nodiscard]] journal_thread* store() const noexcept;

  /// Other limits for the first model's client from now on, and for those that a supervisor may
  /// start in its place.
  void tune(const model_tune& limits);

  /// Where runs get their ids: above those of the journal.
  [[nodiscard]] run_numbers& numbers() const noexcept;

  /// What all the runtime's calls may spend and have spent.
  [[nodiscard]] budget_account& budget() const noexcept;

  /// Of all models together.
  [[nodiscard]] const model_client_stats& model_stats() const noexcept;
  [[nodiscard]] const reply_keeper_stats& shelf_stats() const noexcept;
  [[nodiscard]] const executor_pool_stats& pool_stats() const noexcept;
  [[nodiscard]] http_client_stats http_stats() const;

  /// The backend, or null.
  [[nodiscard]] executor* backend() const noexcept;

private:
  struct impl;
  explicit engine(std::unique_ptr<impl> i);
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe
