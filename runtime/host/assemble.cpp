#include "runtime/host/assemble.hpp"

#include "config/agent_file.hpp"
#include "executors/jail/jail_executor.hpp"
#include "executors/process/process_executor.hpp"
#include "runtime/agent/prompt.hpp"
#include "runtime/core/log.hpp"
#include "runtime/host/build_commit.hpp"
#include "runtime/host/models.hpp"
#include "runtime/host/team.hpp"
#include "runtime/host/text_file.hpp"

#include <algorithm>
#include <future>
#include <thread>

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

namespace troupe {
namespace {

/// Descriptors are counted: half of what the process may open is for sockets, the rest for
/// sandboxes (four each) and files.
std::size_t sandbox_limit(std::size_t wanted, bool network) {
  const std::size_t each = 10 + (network ? 2 * max_sandbox_connections : 0);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  return std::max<std::size_t>(1, std::min<std::size_t>(wanted, files.rlim_cur / each));
}

/// The agent's own prompts.
result<given_prompts> prompts_from(const settings& s) {
  if (!s.agent.prompts.empty()) {
    auto text = read_text(s.agent.prompts, "the prompt file");
    return text ? load_given_prompts(*text, s.agent.prompts) : fail(text.error());
  }
  return s.agent.file ? s.agent.file->prompts : given_prompts{};
}

/// Where the option's value stands, for a message about it; empty for a default.
std::string place_of_option(const settings& s, std::string_view name) {
  for (const auto& x : s.explained)
    if (x.name == name && x.origin != value_origin::fallback)
      return x.where + ": " + (x.where.find(name) == std::string::npos ? x.name + ": " : "");
  return {};
}

/// What only a jail can give; empty: nothing.
std::string demand_of(const sandbox_profile& p) {
  if (!p.required.empty())
    return "the layer " + std::string{to_string(p.required.front())};
  if (p.network)
    return "a network with an allow list";
  if (!p.root.empty() || !p.mounts.empty())
    return "a root of its own";
  return {};
}

}  // namespace

engine_options engine_options_from(const settings& s, const sandbox_profile& profile,
                                   const env_lookup& env, bool live_output) {
  engine_options o;
  o.http = http_from(s, env);
  auto levels = levels_below(s.agent.file.get());
  o.pool.max_sandboxes = sandbox_limit(s.sandbox.max_sandboxes != 0
                                         ? s.sandbox.max_sandboxes
                                         : std::size_t{s.batch.max_concurrency} * (1 + levels),
                                       profile.network.has_value());
  o.pool.live_output = live_output;
  return o;
}

budget_limits run_budget_from(const settings& s) {
  budget_limits out;
  out.tokens = s.agent.token_budget;
  out.calls = s.agent.call_budget;
  out.money = s.agent.cost_budget;
  return out;
}

result<profile_settings> profile_from(const settings& s) {
  auto p = find_profile(s.sandbox.profile);
  if (!p)
    return p;
  auto& limits = p->limits;
  limits.memory_bytes = s.sandbox.memory_bytes.value_or(limits.memory_bytes);
  limits.processes = s.sandbox.processes.value_or(limits.processes);
  limits.cpus = s.sandbox.cpus.value_or(limits.cpus);
  p->checkpoints = s.sandbox.checkpoints.value_or(p->checkpoints);
  if (s.sandbox.ready)
    p->profile.ready = *s.sandbox.ready;
  if (!s.agent.imports.empty())
    p->imports = s.agent.imports;
  if (s.sandbox.executor == "process")
    if (auto demand = demand_of(p->profile); !demand.empty())
      return fail(errc::invalid_argument, "the executor 'process' cannot give what the profile '"
                                            + p->profile.name + "' demands: " + demand);
  return p;
}

result<engine::make_executor> executor_from(const settings& s, const sandbox_profile& profile) {
  if (s.sandbox.executor == "jail")
    return [profile](reactor& io) {
      jail_options options;
      options.profiles = {profile};
      return result<std::shared_ptr<executor>>{std::make_shared<jail_executor>(io, options)};
    };
  if (s.sandbox.executor == "process")
    return [name = profile.name](reactor& io) {
      process_options options;
      options.profile = name;
      auto made = std::make_shared<process_executor>(io, options);
      log::warn("the executor is 'process'; its isolation is " + made->info().isolation);
      return result<std::shared_ptr<executor>>{std::move(made)};
    };
  return fail(errc::invalid_argument,
              "there is no executor '" + s.sandbox.executor + "'; this version has: jail, process");
}

result<std::shared_ptr<const tool_set>> tools_from(const settings& s) {
  auto tools = std::make_shared<tool_set>();
  auto added = tools->add(final_answer_tool());
  for (const auto& name : s.agent.tools) {
    if (!added)
      break;
    if (name == "final_answer")
      continue;  // always there
    auto found = builtin_tool(name);
    if (!found)
      return fail(found.error().code, place_of_option(s, "tools") + found.error().detail);
    added = tools->add(std::move(*found));
  }
  if (!added)
    return fail(added.error());
  return std::shared_ptr<const tool_set>{tools};
}

namespace {

/// A file of YAML or JSON; its errors name it.
template <class Read>
auto read_named(const std::string& path, const std::string& what, Read read)
  -> decltype(read(std::string{})) {
  auto text = read_text(path, what);
  if (!text)
    return fail(text.error());
  auto made = read(*text);
  return made ? std::move(made) : fail(made.error().code, path + ": " + made.error().detail);
}

result<ordered_json> schema_in(const std::string& text) {
  auto checked = parse_json(text);
  if (!checked)
    return fail(checked.error());
  return ordered_json::parse(text);
}

/// Errors  invalid_argument: the option is no JSON object.
result<json> extra_body_from(const model_options& o) {
  if (o.extra_body.empty())
    return json{};
  auto parsed = parse_json(o.extra_body);
  if (!parsed)
    return fail(errc::invalid_argument, "extra_body is not JSON: " + parsed.error().detail);
  if (!parsed->is_object())
    return fail(errc::invalid_argument,
                "extra_body is not a JSON object such as {\"service_tier\": \"flex\"}");
  return parsed;
}

/// What the model reads and answers: prompts, plans, forms, and how much of it.
result<void> add_context(const settings& s, agent_options& o) {
  auto& a = s.agent;
  o.structured = a.structured;
  o.prompts = a.structured ? shipped_structured_prompts() : shipped_prompts(o.kind);
  o.planning_interval = a.planning;
  o.answer_retries = a.answer_retries;
  o.context = {a.context_window, a.context_share, a.keep_steps, a.observation_tokens};
  auto prompts = prompts_from(s);
  if (!prompts)
    return fail(prompts.error());
  o.prompts = prompts->over(std::move(o.prompts));
  if (!a.answer_schema.empty()) {
    auto schema = read_named(a.answer_schema, "the answer's schema", schema_in);
    if (!schema)
      return fail(schema.error());
    o.answer_schema = *std::move(schema);
  }
  return {};
}

}  // namespace

agent_kind kind_from(const settings& s) {
  return s.agent.kind == "tool" ? agent_kind::tool_calling : agent_kind::code;
}

result<agent_options> agent_options_from(const settings& s, const tool_set& tools,
                                         const std::vector<std::string>& imports,
                                         const env_lookup& env, std::vector<tool_spec> team) {
  agent_options o;
  o.kind = kind_from(s);
  if (auto ok = add_context(s, o); !ok)
    return fail(ok.error());
  if (s.agent.file) {
    o.name = s.agent.file->name;
    o.description = s.agent.file->description;
  }
  o.managed = std::move(team);
  o.share_sandbox = s.agent.share_sandbox;
  o.calls = s.agent.tool_calls == "text" ? call_protocol::text : call_protocol::native;
  o.choice =
    s.agent.tool_choice == "auto" ? tool_choice::mode::automatic : tool_choice::mode::required;
  o.instructions = s.agent.instructions;
  o.tools = tools.specs();
  o.imports = imports;
  o.max_steps = s.agent.max_steps;
  o.run_time = s.agent.run_time;
  o.step_time = s.agent.step_time;
  o.step_grace = s.agent.step_grace;
  o.token_budget = s.agent.token_budget;
  if (auto target = target_of(s.model, env))
    o.model.model = target->model;
  o.model.temperature = s.model.temperature;
  o.model.max_output_tokens = s.model.max_tokens;
  o.model.seed = s.model.seed;
  o.model.reasoning_effort = s.model.reasoning_effort;
  auto extra = extra_body_from(s.model);
  if (!extra)
    return fail(extra.error());
  o.model.extra_body = *std::move(extra);
  return o;
}

result<std::shared_ptr<const agent_definition>> define_agent_of(const settings& s,
                                                                agent_options options) {
  auto defined = define_agent(std::move(options));
  if (defined)
    return defined;
  auto prompts = prompts_from(s);
  return fail(defined.error().code,
              prompts ? prompts->placed(defined.error().detail) : defined.error().detail);
}

result<std::shared_ptr<const agent_definition>> agent_from(const settings& s, const tool_set& tools,
                                                           const std::vector<std::string>& imports,
                                                           const env_lookup& env,
                                                           std::vector<tool_spec> team) {
  return agent_options_from(s, tools, imports, env, std::move(team)).and_then([&](agent_options o) {
    return define_agent_of(s, std::move(o));
  });
}

sandbox_spec sandbox_from(const profile_settings& profile, const tool_set& tools) {
  auto spec = profile.spec();
  spec.tools = tools.specs();
  return spec;
}

result<void> try_sandbox(executor& backend, sandbox_spec spec) {
  auto answer = std::make_shared<std::promise<result<void>>>();
  backend.open(std::move(spec), [answer](result<std::shared_ptr<sandbox>> opened) {
    if (!opened) {
      answer->set_value(fail(opened.error()));
      return;
    }
    auto box = *opened;
    box->close([answer, box](const close_report&) { answer->set_value({}); });
  });
  return answer->get_future().get();
}

json machine_record(const executor* backend) {
  utsname os{};
  uname(&os);
  struct sysinfo memory {};
  sysinfo(&memory);
  json out{{"cores", std::thread::hardware_concurrency()},
           {"memory_bytes", memory.totalram * memory.mem_unit},
           {"kernel", std::string{os.sysname} + " " + os.release},
           {"load", static_cast<double>(memory.loads[0]) / (1 << SI_LOAD_SHIFT)},
           {"troupe", TROUPE_VERSION},
           {"commit", build_commit}};
  if (backend) {
    auto info = backend->info();
    out["executor"] = {{"name", info.name},
                       {"isolation", info.isolation},
                       {"missing", info.missing},
                       {"python", info.python}};
  }
  return out;
}

}  // namespace troupe
