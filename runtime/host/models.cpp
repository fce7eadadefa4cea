#include "runtime/host/models.hpp"

#include "config/price_file.hpp"
#include "runtime/core/log.hpp"
#include "runtime/host/text_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <sys/resource.h>

namespace troupe {
namespace {

constexpr std::size_t most_connections = 10'000;  // that the options allow

/// Descriptors are counted: half of what the process may open is for sockets, the rest for
/// sandboxes (four each) and files.
std::size_t socket_limit(std::size_t wanted) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  return std::max<std::size_t>(1, std::min<std::size_t>(wanted, files.rlim_cur / 2));
}

result<endpoint_maker> mock_endpoint_from(const std::string& path, std::uint64_t seed) {
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

/// What of the settings and the environment must not get into a file.
std::vector<std::string> secrets_of(const model_target& target, const env_lookup& env) {
  std::vector<std::string> out;
  if (!target.key_variable.empty())
    out.push_back(env(target.key_variable).value_or(""));
  for (const auto& [name, text] : target.headers)
    out.push_back(text);
  return out;
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
  if (!readable)
    return fail(readable.error());
  if (readable->find("-----BEGIN ") == std::string::npos)
    return fail(errc::invalid_argument,
                "the CA file in " + roots.named_in + ": " + roots.path
                  + ": holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)");
  return {};
}

result<endpoint_maker> endpoint_of(const settings& s, const model_options& m,
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

result<model_endpoint> fallback_endpoint(const settings& s, const std::string& name,
                                         const model_target& first, const env_lookup& env) {
  auto m = for_model(s.model, name);
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
  return model_endpoint{std::move(*made), name, target->model, 1};
}

/// The model asked for, its other addresses, its fallbacks in their order.
result<std::vector<model_endpoint>> endpoints_of(const settings& s, const model_target& first,
                                                 const env_lookup& env) {
  std::vector<model_endpoint> out;
  auto add = [&](const std::string& base, const std::string& name) -> result<void> {
    auto there = s.model;
    there.base_url = base;
    auto made = endpoint_of(s, there, first, env);
    if (!made)
      return fail(made.error());
    out.push_back({std::move(*made), name, {}, 0});
    return {};
  };
  auto added = add(s.model.base_url, {});
  for (auto& base : s.model.more_base_urls)
    if (added)
      added = add(base, base);
  if (!added)
    return fail(added.error());
  std::uint32_t choice = 0;
  for (auto& name : s.model.fallback_models) {
    auto other = fallback_endpoint(s, name, first, env);
    if (!other)
      return fail(other.error().code, "fallback_model: " + other.error().detail);
    other->choice = ++choice;
    out.push_back(std::move(*other));
  }
  return out;
}

result<void> add_prices(const settings& s, std::vector<model_endpoint>& all) {
  auto list = read_prices(s.batch.prices);
  if (!list)
    return fail(list.error());
  const auto* limit = s.batch.max_cost > 0      ? "max_cost"
                      : s.agent.cost_budget > 0 ? "cost_budget"
                                                : nullptr;
  for (auto& one : all) {
    auto found = price_of(*list, one.choice == 0 ? s.model.model : one.name, s.batch.prices);
    if (found)
      one.cost = *std::move(found);
    else if (limit != nullptr)
      return fail(found.error().code, limit + (": " + found.error().detail));
  }
  return {};
}

model_client_options client_from(const settings& s) {
  auto limits = limits_from(s);
  model_client_options o;
  o.max_in_flight = *limits.max_in_flight;
  o.attempt_timeout = s.model.request_timeout;
  o.retry.max_attempts = s.model.attempts;
  o.rates = *limits.rates;
  o.seed = static_cast<std::uint64_t>(s.model.seed.value_or(1));
  return o;
}

/// All that decides which clients may be one: what is sent with a request by itself is left out.
std::string key_of(const settings& s) {
  auto& m = s.model;
  return dump_json({m.model, m.base_url, m.more_base_urls, m.fallback_models, m.api_key_env, m.api,
                    m.api_version, m.headers, m.request_timeout.count(), m.stall_timeout.count(),
                    m.attempts, m.max_connections, m.requests_per_minute, m.tokens_per_minute,
                    m.prompt_cache});
}

}  // namespace

model_options for_model(model_options m, const std::string& name) {
  auto provider = m.model.substr(0, m.model.find('/') + 1);
  m.model = name;
  if (name.starts_with(provider))
    return m;
  m.base_url.clear();
  m.more_base_urls.clear();
  m.api_key_env.clear();
  m.headers.clear();
  m.api = "auto";
  m.api_version.clear();
  return m;
}

result<model_options> with_own_model(model_options m, const std::vector<option_input>& own) {
  settings s;
  s.model = std::move(m);
  auto named = std::ranges::find(own, "model", &option_input::name);
  if (named != own.end() && !named->words.empty()) {
    s.model = for_model(std::move(s.model), named->words.front());
    s.model.fallback_models.clear();
  }
  for (auto& o : own)
    if (const auto* row = find_option(o.name); row != nullptr && row->is_of_models())
      if (auto done = assign(s, o); !done)
        return fail(done.error());
  return std::move(s.model);
}

result<model_target> target_of(const model_options& m, const env_lookup& env) {
  auto options = m;
  if (!options.replay.empty() && options.base_url.empty())
    options.base_url = "http://replayed.invalid";
  return parse_model_name(options, env);
}

result<engine_model> model_from(const settings& s, const env_lookup& env) {
  auto target = target_of(s.model, env);
  if (!target)
    return fail(target.error());
  engine_model out;
  auto endpoints = endpoints_of(s, *target, env);
  if (!endpoints)
    return fail(endpoints.error());
  if (auto priced = add_prices(s, *endpoints); !priced)
    return fail(priced.error());
  out.key = key_of(s);
  out.endpoints = *std::move(endpoints);
  out.client = client_from(s);
  out.keeper.format = make_codec(codec_from(*target, marks_prompts(s.model, *target)));
  out.keeper.base = target->base_url.empty() ? s.model.model : target->base_url;
  out.secrets = secrets_of(*target, env);
  return out;
}

result<std::shared_ptr<reply_shelf>> shelf_from(const settings& s, const env_lookup& env) {
  auto& o = s.model;
  auto use = use_of(o.cache);
  if ((use != cache_use::off) + !o.record.empty() + !o.replay.empty() > 1)
    return fail(errc::invalid_argument,
                "cache, record and replay exclude each other: choose one of them");
  auto shared = [](auto made) {
    return std::shared_ptr<reply_shelf>{make_locked_shelf(std::move(made))};
  };
  if (!o.record.empty())
    return make_recording_shelf(o.record, {}).map(shared);
  if (!o.replay.empty())
    return make_playing_shelf(
             o.replay, o.replay_match == "loose" ? cassette_match::loose : cassette_match::exact,
             {})
      .map(shared);
  if (use == cache_use::off)
    return std::shared_ptr<reply_shelf>{};
  return reply_cache::open(cache_file(o.cache_file, env)).map([&](auto store) {
    auto age = std::chrono::duration_cast<std::chrono::seconds>(o.cache_max_age);
    return shared(make_cache_shelf(std::move(store), use, age));
  });
}

http_client_limits http_from(const settings& s, const env_lookup& env) {
  http_client_limits out;
  out.max_connections = socket_limit(most_connections);
  out.max_idle_per_peer = out.max_connections;
  out.proxies = proxies_from(env, s.model.proxy);
  out.ca_file = ca_file_from(s, env).path;
  return out;
}

result<void> add_budget(const settings& s, engine_options& into) {
  into.budget.tokens = s.batch.max_tokens_total;
  into.budget.calls = s.batch.max_calls;
  into.budget.money = s.batch.max_cost;
  return read_prices(s.batch.prices).map([&](const price_list& list) {
    into.currency = list.currency;
  });
}

model_tune limits_from(const settings& s) {
  return {rate_settings{static_cast<double>(s.model.requests_per_minute),
                        static_cast<double>(s.model.tokens_per_minute)},
          s.model.max_connections != 0 ? s.model.max_connections : s.batch.max_concurrency};
}

}  // namespace troupe
