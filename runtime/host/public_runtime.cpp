#include "actors/address.hpp"
#include "actors/runs.hpp"
#include "config/agent_file.hpp"
#include "executors/spec_check.hpp"
#include "runtime/core/log.hpp"
#include "runtime/host/assemble.hpp"
#include "runtime/host/models.hpp"
#include "runtime/host/public_specs.hpp"
#include "runtime/host/submitted_runs.hpp"
#include "runtime/host/team.hpp"
#include <troupe/runtime.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace troupe {

/// Ready to run; what it was checked against does not change any more.
struct agent::definition {
  std::string name;
  const void* home = nullptr;  ///< its runtime's impl, only compared
  std::shared_ptr<const agent_context> context;
};

struct session::definition {
  const void* home = nullptr;  ///< as an agent's
  session_spec spec;
  std::vector<session_member_card> cards;
  std::vector<std::shared_ptr<const agent_context>> contexts;
};

const std::string& agent::name() const noexcept {
  return definition_->name;
}

struct runtime::impl {
  std::vector<option_input> file;   ///< of the configuration
  std::vector<option_input> given;  ///< by the program
  settings options;
  env_lookup env = process_environment();
  profile_settings profile;
  std::shared_ptr<submitted_runs> runs =
    std::make_shared<submitted_runs>(std::make_shared<callback_thread>());
  std::unique_ptr<engine> host;
  batch_record record;
  bool priced = false;

  std::mutex proving;   // guards proved
  bool proved = false;  ///< a sandbox could be opened

  std::mutex stopping;  // one stop at a time
  bool stopped = false;

  result<void> begin(const runtime_options& o);
  result<void> keep_record(const journal& store);
  result<void> prove(const sandbox_spec& box);
  result<std::shared_ptr<const agent_context>> context_of(agent_spec spec,
                                                          const std::vector<tool_spec>& own);
  static run_order order_of(const std::shared_ptr<run::state>& state, std::string sample,
                            std::string task, submit_options& how);
  std::shared_ptr<run::state> new_run(submit_options& how) const;
  bool take_in(const std::shared_ptr<run::state>& state, const void* home,
               const std::string& what) const;
  result<std::vector<managed_agent>> team_of(const settings& s, const std::vector<agent>& given);
  result<settings> settings_for(const agent_spec& spec) const;
  void end_record();
  void stop();
};

/// What the journal says of its batch: as before, or that this program began it.
result<void> runtime::impl::keep_record(const journal& store) {
  auto before = store.batch();
  if (!before)
    return fail(before.error());
  record.started_at = before->started_at != 0 ? before->started_at : wall_micros();
  record.config = before->config;
  if (record.config.empty())
    record.config =
      dump_json({{"options", to_json(options)},
                 {"dataset", {{"path", "(a program)"}, {"sha256", ""}, {"samples", 0}}}});
  return {};
}

result<void> runtime::impl::begin(const runtime_options& o) {
  if (o.tool_threads == 0)
    return fail(errc::invalid_argument, "runtime_options: tool_threads must be at least 1");
  if (!o.config.empty()) {
    auto read = read_config(o.config);
    if (!read)
      return fail(read.error());
    file = *std::move(read);
  }
  given = inputs_of(o);
  auto resolved = resolve(command::eval, file, {}, given);
  if (!resolved)
    return fail(resolved.error());
  options = *std::move(resolved);
  if (o.options.contains("log_level"))
    log::set_level(log::level_from(options.output.log_level, log::level::warn));
  auto found = profile_from(options);
  auto model = model_from(options, env);
  if (!found)
    return fail(found.error());
  if (!model)
    return fail(model.error());
  profile = *std::move(found);
  auto boxes = executor_from(options, profile.profile);
  if (!boxes)
    return fail(boxes.error());
  auto parts = engine_options_from(options, profile.profile, env, true);
  parts.tool_hosts = o.tool_threads;
  parts.tools_may_block = true;
  auto asked = hooks_of(o.hooks);
  if (!asked)
    return fail(asked.error());
  if (!(*asked)->empty())
    parts.hooks = *std::move(asked);
  parts.runs = runs_options{.max_concurrency = options.batch.max_concurrency};
  priced = model->endpoints.front().cost.has_value();
  parts.models.push_back(*std::move(model));
  if (auto added = add_budget(options, parts); !added)
    return added;
  std::unique_ptr<journal> store;
  if (!options.batch.out.empty()) {
    auto opened = journal::open(options.batch.out);
    if (!opened)
      return fail(opened.error());
    store = *std::move(opened);
    if (auto kept = keep_record(*store); !kept)
      return kept;
  }
  auto shelf = shelf_from(options, env);
  if (!shelf)
    return fail(shelf.error());
  parts.shelf = *std::move(shelf);
  auto started =
    engine::start(std::move(parts), *boxes, std::move(store), [runs = runs](const error& e) {
      auto why = "the runtime gave up: " + e.detail;
      log::error(why);
      runs->close(why);
      runs->end_all("error", why);
    });
  if (!started)
    return fail(started.error());
  host = *std::move(started);
  runs->open(*host);
  record.machine = dump_json(machine_record(host->backend()));
  if (auto* thread = host->store())
    return thread->put_batch(record, {});
  return {};
}

result<settings> runtime::impl::settings_for(const agent_spec& spec) const {
  auto own = inputs_of(spec);
  if (!own)
    return fail(own.error());
  auto below = file;
  std::shared_ptr<const agent_file> described;
  if (!spec.file.empty()) {
    auto read = read_agent_file(spec.file);
    if (!read)
      return fail(read.error());
    described = *std::move(read);
    below.insert(below.end(), described->options.begin(), described->options.end());
  }
  auto above = given;
  std::ranges::copy_if(*own, std::back_inserter(above),
                       [](auto& o) { return !is_of_models(o.name); });
  auto s = resolve(command::eval, below, {}, above);
  if (!s)
    return s;
  auto model = with_own_model(s->model, *own);
  if (!model)
    return fail(model.error());
  s->model = *std::move(model);
  s->agent.file = std::move(described);
  if (s->agent.approve != "auto")
    return fail(errc::invalid_argument,
                "approve: asks on the command line; a program gives hooks in runtime_options");
  if (s->sandbox.profile != options.sandbox.profile
      || s->sandbox.executor != options.sandbox.executor)
    return fail(errc::invalid_argument,
                spec.file
                  + ": wants another profile or executor than the runtime was started with; "
                    "give it in runtime_options");
  return s;
}

/// Once: what is wrong with the machine is found before a model call is paid.
result<void> runtime::impl::prove(const sandbox_spec& box) {
  std::lock_guard lock{proving};
  if (proved)
    return {};
  if (auto works = try_sandbox(*host->backend(), box); !works)
    return fail(works.error().code, "no sandbox can be opened: " + works.error().detail);
  proved = true;
  return {};
}

/// The children of the agent's file, then those that the program gives.
result<std::vector<managed_agent>> runtime::impl::team_of(const settings& s,
                                                          const std::vector<agent>& given_agents) {
  auto read = read_team(s, env);
  if (!read)
    return fail(read.error());
  if (auto found = find_models(*read, env); !found)
    return fail(found.error());
  auto out = start_team(*host, *read);
  for (auto& one : given_agents) {
    if (!out)
      return out;
    if (one.definition_->home != this)
      return fail(errc::invalid_argument,
                  "agent '" + one.name() + "' is another runtime's, and cannot be in this team");
    auto made = make_managed_agent(one.definition_->context);
    if (!made)
      return fail(made.error());
    out->push_back(*std::move(made));
  }
  return out;
}

void runtime::impl::end_record() {
  auto* thread = host->store();
  if (thread == nullptr)
    return;
  record.ended_at = wall_micros();
  record.end = "completed";
  record.machine = dump_json(machine_record(host->backend()));
  if (auto put = thread->put_batch(record, {}); put)
    thread->flush_blocking();
}

void runtime::impl::stop() {
  std::lock_guard lock{stopping};
  if (std::exchange(stopped, true))
    return;
  runs->close("the runtime has ended");
  if (host) {
    host->stop_tree();
    end_record();
  }
  runs->end_all("cancelled", "the runtime ended before the run did");
  runs->callbacks().finish();
}

runtime::runtime(std::unique_ptr<impl> i) : impl_{std::move(i)} {}
runtime::runtime(runtime&& other) noexcept = default;

runtime& runtime::operator=(runtime&& other) noexcept {
  if (this != &other) {
    stop();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

runtime::~runtime() {
  stop();
}

void runtime::stop() {
  if (impl_)
    impl_->stop();
}

result<runtime> runtime::start(const runtime_options& options) {
  runtime out{std::make_unique<impl>()};
  if (auto begun = out.impl_->begin(options); !begun)
    return fail(begun.error());
  return out;
}

/// `own` are tools that a session answers.
result<std::shared_ptr<const agent_context>>
runtime::impl::context_of(agent_spec spec, const std::vector<tool_spec>& own) {
  auto s = settings_for(spec);
  if (!s)
    return fail(s.error());
  auto tools = all_tools(*s, std::move(spec.tools));
  if (!tools)
    return fail(tools.error());
  auto rules = profile;
  if (!s->agent.imports.empty())
    rules.imports = s->agent.imports;
  auto members = team_of(*s, spec.team);
  if (!members)
    return fail(members.error());
  std::vector<tool_spec> managed;
  for (auto& member : *members)
    managed.push_back(member.tool);
  auto what = agent_options_from(*s, **tools, rules.imports, env, std::move(managed));
  if (!what)
    return fail(what.error());
  what->tools.insert(what->tools.end(), own.begin(), own.end());
  if (!spec.description.empty())
    what->description = spec.description;
  if (spec.name != agent_spec{}.name)
    what->name = spec.name;
  what->checks = checks_of(std::move(spec.checks));
  auto defined = define_agent_of(*s, *std::move(what));
  if (!defined)
    return fail(defined.error());
  auto box = sandbox_from(rules, **tools);
  box.tools.insert(box.tools.end(), own.begin(), own.end());
  if (kind_from(*s) == agent_kind::code) {
    auto works = check_spec(box, {rules.profile.name});
    if (works)
      works = prove(box);
    if (!works)
      return fail(works.error());
  }
  auto model =
    model_from(*s, env).and_then([&](engine_model m) { return host->add_model(std::move(m)); });
  if (!model)
    return fail(model.error());
  job_options job;
  job.run_budget = run_budget_from(*s);
  job.model = *model;
  auto shared = sandbox_of_team(std::move(box), (*defined)->options, *members);
  if (!shared)
    return fail(shared.error());
  return host->make_context(*std::move(defined), *tools, *std::move(shared), job,
                            *std::move(members));
}

/// A run that has not begun, with the callbacks that its submitter gave.
std::shared_ptr<run::state> runtime::impl::new_run(submit_options& how) const {
  auto state = std::make_shared<run::state>();
  state->id = host->numbers().take().value;
  state->home = runs;
  state->on_event = std::move(how.on_event);
  if (how.on_end)
    state->callbacks.push_back(std::move(how.on_end));
  return state;
}

/// False, and it is complete, when it cannot be begun.
bool runtime::impl::take_in(const std::shared_ptr<run::state>& state, const void* home,
                            const std::string& what) const {
  run_outcome refused;
  if (home != this) {
    refused.error = what + " was defined by another runtime";
  } else if (!runs->add(state)) {
    refused.end = "cancelled";
    refused.error = runs->closed_because();
  } else {
    return true;
  }
  state->complete(std::move(refused));
  return false;
}

result<agent> runtime::define(agent_spec spec) {
  return impl_->context_of(std::move(spec), {}).map([&](std::shared_ptr<const agent_context> made) {
    auto name = made->agent->options.name;
    return agent{std::make_shared<const agent::definition>(
      agent::definition{std::move(name), impl_.get(), std::move(made)})};
  });
}

result<session> runtime::define(session_spec spec) {
  session::definition out{impl_.get(), std::move(spec), {}, {}};
  for (auto& m : out.spec.members)
    out.cards.push_back({m.agent.name, m.agent.description, m.topics});
  if (auto fine = validate(out.cards); !fine)
    return fail(fine.error());
  for (auto& m : out.spec.members) {
    auto made = impl_->context_of(m.agent, session_tools(out.cards, m.agent.name));
    if (!made)
      return fail(made.error().code, m.agent.name + ": " + made.error().detail);
    out.contexts.push_back(*std::move(made));
  }
  return session{std::make_shared<const session::definition>(std::move(out))};
}

/// What it is told of its run; it is begun by `runs`.
run_order runtime::impl::order_of(const std::shared_ptr<run::state>& state, std::string sample,
                                  std::string task, submit_options& how) {
  run_order order;
  order.run = run_id{state->id};
  order.sample = std::move(sample);
  order.input.task = std::move(task);
  for (auto& [path, bytes] : how.files)
    order.files.push_back({std::move(path), std::move(bytes)});
  if (state->on_event)
    order.viewer = [state](const run_event& e) {
      state->see(e);
      return true;
    };
  order.paused = how.paused;
  order.done = [state](const run_result& r) { state->complete(outcome_of(r)); };
  return order;
}

run runtime::submit(const agent& who, std::string task, submit_options how) {
  auto& p = *impl_;
  auto state = p.new_run(how);
  if (!p.take_in(state, who.definition_->home, "the agent '" + who.name() + "'"))
    return run{state};
  auto order = impl::order_of(state, "run-" + std::to_string(state->id), std::move(task), how);
  order.agent = who.definition_->context;
  p.runs->post(run_submit{std::make_shared<const run_order>(std::move(order))});
  return run{state};
}

run runtime::submit(const session& who, std::string task, submit_options how) {
  auto& p = *impl_;
  auto state = p.new_run(how);
  auto& d = *who.definition_;
  if (!p.take_in(state, d.home, "the session"))
    return run{state};
  session_plan plan;
  plan.where = std::make_shared<address>();
  for (std::size_t i = 0; i < d.cards.size(); ++i) {
    // What the members ask of their session goes to this one.
    auto context = std::make_shared<agent_context>(*d.contexts[i]);
    for (auto& tool : session_tools(d.cards, d.cards[i].name))
      context->served[tool.name] = plan.where;
    plan.members.push_back({d.cards[i], std::move(context)});
  }
  plan.entry = d.cards.front().name;
  plan.max_letters = d.spec.max_letters;
  plan.memory = d.spec.memory;
  plan.time = d.spec.time;
  auto order = impl::order_of(state, "session-" + std::to_string(state->id), std::move(task), how);
  order.agent = plan.members.front().agent;
  order.session = std::move(plan);
  p.runs->post(run_submit{std::make_shared<const run_order>(std::move(order))});
  return run{state};
}

runtime_usage runtime::usage() const {
  auto spent = impl_->host->budget().spent();
  runtime_usage out;
  out.calls = spent.calls;
  out.input_tokens = spent.tokens.input;
  out.output_tokens = spent.tokens.output;
  out.money = impl_->priced ? spent.money : 0;
  out.currency = impl_->host->budget().currency();
  return out;
}

}  // namespace troupe
