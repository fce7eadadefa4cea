#include "runtime/host/assemble.hpp"

#include "config/agent_file.hpp"
#include "config/model_name.hpp"
#include "config/price_file.hpp"
#include "executors/jail/jail_executor.hpp"
#include "executors/process/process_executor.hpp"
#include "runtime/agent/prompt.hpp"
#include "runtime/core/log.hpp"
#include "runtime/host/team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

namespace troupe {
namespace {

constexpr std::uint32_t most_connections = 10'000;  // that the options allow

result<std::string> read_text(const std::string& path, const std::string& what) {
  std::ifstream in{path, std::ios::binary};
  if (!in)
    return fail(errc::not_found, what + " '" + path + "' cannot be read: " + errno_text(errno));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

result<engine::make_endpoint> mock_endpoint_from(const std::string& path, std::uint64_t seed) {
  auto text = read_text(path, "the mock model's script");
  if (!text)
    return fail(text.error());
  auto script = mock_script::parse(*text);
  if (!script)
    return fail(script.error().code, path + ": " + script.error().detail);
  return [script = std::move(*script), seed](http_client&, timers& clock) {
    return result<std::shared_ptr<endpoint>>{make_mock_endpoint(script, clock, seed)};
  };
}

/// The history of a run is kept with the marks in it: a fallback gets them where the model asked
/// for does.
bool marks_prompts(const model_options& m, const model_target& first) {
  return m.prompt_cache && first.provider == "anthropic" && first.api == "messages";
}

codec_options codec_from(const model_target& target, bool prompt_cache) {
  codec_options o;
  o.prompt_cache = prompt_cache;
  o.azure = target.provider == "azure";
  o.version = target.api_version;
  if (target.api == "responses")
    o.wire = wire_format::openai_responses;
  else if (target.api == "messages")
    o.wire = wire_format::anthropic;
  return o;
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

/// What of the settings and the environment must not get into a file.
std::vector<std::string> secrets_of(const model_target& target, const env_lookup& env) {
  std::vector<std::string> out;
  if (!target.key_variable.empty())
    out.push_back(env(target.key_variable).value_or(""));
  for (const auto& [name, text] : target.headers)
    out.push_back(text);
  return out;
}

/// Nobody is called when a recording is played: no key is needed.
result<model_target> target_of(const model_options& m, const env_lookup& env) {
  auto options = m;
  if (!options.replay.empty() && options.base_url.empty())
    options.base_url = "http://replayed.invalid";
  return parse_model_name(options, env);
}

std::string cache_file(const std::string& given, const env_lookup& env) {
  if (!given.empty())
    return given;
  auto home = env("XDG_CACHE_HOME").value_or("");
  return (home.empty() ? env("HOME").value_or(".") + "/.cache" : home) + "/troupe/replies.db";
}

cache_use use_of(const std::string& word) {
  return word == "on"        ? cache_use::on
         : word == "read"    ? cache_use::read
         : word == "refresh" ? cache_use::refresh
                             : cache_use::off;
}

result<std::shared_ptr<reply_shelf>> shelf_from(const model_options& o, const model_target& target,
                                                const env_lookup& env) {
  auto use = use_of(o.cache);
  if ((use != cache_use::off) + !o.record.empty() + !o.replay.empty() > 1)
    return fail(errc::invalid_argument,
                "cache, record and replay exclude each other: choose one of them");
  auto shared = [](auto made) { return std::shared_ptr<reply_shelf>{std::move(made)}; };
  if (!o.record.empty())
    return make_recording_shelf(o.record, secrets_of(target, env)).map(shared);
  if (!o.replay.empty())
    return make_playing_shelf(
             o.replay, o.replay_match == "loose" ? cassette_match::loose : cassette_match::exact,
             secrets_of(target, env))
      .map(shared);
  if (use == cache_use::off)
    return std::shared_ptr<reply_shelf>{};
  return reply_cache::open(cache_file(o.cache_file, env)).map([&](auto store) {
    auto age = std::chrono::duration_cast<std::chrono::seconds>(o.cache_max_age);
    return shared(make_cache_shelf(std::move(store), use, age));
  });
}

struct named_file {
  std::string path;  ///< empty: the system's roots
  std::string named_in;
};

named_file ca_file_from(const settings& s, const env_lookup& env) {
  if (!s.model.ca_file.empty())
    return {s.model.ca_file, "--ca-file"};
  return {env("SSL_CERT_FILE").value_or(""), "SSL_CERT_FILE"};
}

/// What would fail every call is found before anything starts.
result<void> check_way_to(const url& base, const settings& s, const env_lookup& env) {
  auto proxies = proxies_from(env, s.model.proxy);
  for (const auto& entry : proxies.not_understood)
    log::warn("NO_PROXY: '" + entry + "' is no host name, address or network, and is left out");
  if (auto via = proxies.select(base); !via)
    return fail(via.error());
  auto roots = ca_file_from(s, env);
  if (base.scheme != "https" || roots.path.empty())
    return {};
  auto readable = read_text(roots.path, "the CA file in " + roots.named_in);
  return readable ? result<void>{} : fail(readable.error());
}

result<engine::make_endpoint> endpoint_of(const settings& s, const model_options& m,
                                          const model_target& first, const env_lookup& env) {
  auto target = target_of(m, env);
  if (!target)
    return fail(target.error());
  if (target->provider == "mock")
    return mock_endpoint_from(target->model, static_cast<std::uint64_t>(m.seed.value_or(1)));
  auto base = parse_url(target->base_url);
  if (!base)
    return fail(base.error());
  if (auto open = check_way_to(*base, s, env); !open)
    return fail(open.error());
  http_endpoint_options where{
    .base = std::move(*base), .headers = target->headers, .silence = m.stall_timeout};
  if (!target->key_variable.empty())
    where.key = env(target->key_variable).value_or("");
  auto format = make_codec(codec_from(*target, marks_prompts(m, first)));
  return [where = std::move(where), format = std::move(format)](http_client& client, timers&) {
    return result<std::shared_ptr<endpoint>>{make_http_endpoint(client, format, where)};
  };
}

/// Address, key and headers of the model asked for are not its fallback's, unless both are of one
/// provider.
result<other_endpoint> fallback_endpoint(const settings& s, const std::string& name,
                                         const model_target& first, const env_lookup& env) {
  auto m = s.model;
  m.model = name;
  if (!name.starts_with(first.provider + "/")) {
    m.base_url.clear();
    m.api_key_env.clear();
    m.headers.clear();
    m.api = "auto";
    m.api_version.clear();
  }
  auto target = parse_model_name(m, env);
  if (!target)
    return fail(target.error());
  if (target->api != first.api)
    return fail(errc::invalid_argument,
                fmt::format("'{}' speaks {}, and '{}' {}: a run's history is kept in one of them; "
                            "choose a model that speaks {}",
                            name, target->api, s.model.model, first.api, first.api));
  auto made = endpoint_of(s, m, first, env);
  if (!made)
    return fail(made.error());
  return other_endpoint{std::move(*made), name, target->model, 1};
}

std::uint32_t in_flight_of(const settings& s) {
  return s.model.max_connections != 0 ? s.model.max_connections : s.batch.max_concurrency;
}

/// Connections that may be wanted at some time.
std::uint32_t connections_of(const settings& s) {
  return s.model.limits_file.empty() ? in_flight_of(s) : most_connections;
}

/// Descriptors are counted: half of what the process may open is for sockets, the rest for
/// sandboxes (four each) and files.
std::size_t socket_limit(std::size_t wanted) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  return std::max<std::size_t>(1, std::min<std::size_t>(wanted, files.rlim_cur / 2));
}

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
  o.model.max_in_flight = in_flight_of(s);
  o.model.attempt_timeout = s.model.request_timeout;
  o.model.retry.max_attempts = s.model.attempts;
  o.model.rates = *limits_from(s).rates;
  o.model.seed = static_cast<std::uint64_t>(s.model.seed.value_or(1));
  o.http.max_connections = socket_limit(connections_of(s));
  o.http.max_idle_per_peer = o.http.max_connections;
  o.http.proxies = proxies_from(env, s.model.proxy);
  o.http.ca_file = ca_file_from(s, env).path;
  auto levels = levels_below(s.agent.file.get());
  o.pool.max_sandboxes = sandbox_limit(s.sandbox.max_sandboxes != 0
                                         ? s.sandbox.max_sandboxes
                                         : std::size_t{s.batch.max_concurrency} * (1 + levels),
                                       profile.network.has_value());
  o.pool.live_output = live_output;
  return o;
}

result<void> add_shelf(engine_options& options, const settings& s, const env_lookup& env) {
  auto target = target_of(s.model, env);
  if (!target)
    return fail(target.error());
  auto shelf = shelf_from(s.model, *target, env);
  if (!shelf)
    return fail(shelf.error());
  options.shelf = *std::move(shelf);
  options.keeper.format = make_codec(codec_from(*target, marks_prompts(s.model, *target)));
  options.keeper.base = target->base_url.empty() ? s.model.model : target->base_url;
  return {};
}

result<engine::make_endpoint> endpoint_from(const settings& s, const env_lookup& env) {
  auto target = target_of(s.model, env);
  if (!target)
    return fail(target.error());
  return endpoint_of(s, s.model, *target, env);
}

result<std::vector<other_endpoint>> other_endpoints_from(const settings& s, const env_lookup& env) {
  auto first = target_of(s.model, env);
  if (!first)
    return fail(first.error());
  std::vector<other_endpoint> out;
  for (auto& base : s.model.more_base_urls) {
    auto there = s.model;
    there.base_url = base;
    auto made = endpoint_of(s, there, *first, env);
    if (!made)
      return fail(made.error());
    out.push_back({std::move(*made), base, {}, 0});
  }
  for (auto& name : s.model.fallback_models) {
    auto other = fallback_endpoint(s, name, *first, env);
    if (!other)
      return fail(other.error().code, "fallback_model: " + other.error().detail);
    other->choice = static_cast<std::uint32_t>(out.empty() ? 0 : out.back().choice) + 1;
    out.push_back(std::move(*other));
  }
  return out;
}

result<void> add_budget(const settings& s, engine_options& into) {
  into.budget.tokens = s.batch.max_tokens_total;
  into.budget.calls = s.batch.max_calls;
  into.budget.money = s.batch.max_cost;
  auto list = read_prices(s.batch.prices);
  if (!list)
    return fail(list.error());
  into.currency = list->currency;
  const auto* limit = s.batch.max_cost > 0      ? "max_cost"
                      : s.agent.cost_budget > 0 ? "cost_budget"
                                                : nullptr;
  auto look_up = [&](const std::string& model, std::optional<price>& cost) -> result<void> {
    auto found = price_of(*list, model, s.batch.prices);
    if (found)
      cost = *std::move(found);
    else if (limit != nullptr)
      return fail(found.error().code, limit + (": " + found.error().detail));
    return {};
  };
  auto found = look_up(s.model.model, into.cost);
  for (auto& o : into.others)
    if (found)
      found = look_up(o.choice == 0 ? s.model.model : o.name, o.cost);
  return found;
}

model_tune limits_from(const settings& s) {
  return {rate_settings{static_cast<double>(s.model.requests_per_minute),
                        static_cast<double>(s.model.tokens_per_minute)},
          in_flight_of(s)};
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
           {"commit", TROUPE_COMMIT}};
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
