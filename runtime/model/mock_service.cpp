#include "runtime/model/mock_service.hpp"

#include "runtime/core/json.hpp"
#include "runtime/core/text.hpp"
#include "runtime/model/mock_route.hpp"
#include "runtime/model/mock_script.hpp"
#include "runtime/model/shortened_json.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace troupe {
namespace {

constexpr std::size_t past_bytes = 64u << 20;
constexpr millis failure_pause{60'000};  // of a scripted timeout
constexpr json_limits request_limits{.max_bytes = 64u << 20, .max_depth = 100};

/// SplitMix's output is another for every number: ids of one server differ.
std::string id_of(std::uint64_t seed, std::uint64_t number) {
  rng mix{seed * 0x9E3779B97F4A7C15u ^ 0x6D6F636Bu};
  rng own{mix.next() + number};
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx",
                static_cast<unsigned long long>(own.next()));
  return digits.data();
}

json model_object(std::string_view name, std::int64_t seconds) {
  return {{"id", name},
          {"object", "model"},
          {"created", seconds},
          {"owned_by", "mock"},
          {"type", "model"},
          {"display_name", name},
          {"created_at", "2026-01-01T00:00:00Z"}};
}

bool looks_at_last(const mock_script::data& script) {
  return std::any_of(script.rules.begin(), script.rules.end(),
                     [](auto& rule) { return rule.if_last_contains.has_value(); });
}

/// Stop sequences and the limit on tokens, as a provider would hold to them.
void bound_reply(const mock_ask& ask, mock_message& m) {
  auto& text = m.reply.text;
  auto before = text.size();
  auto first = std::string::npos;
  for (auto& stop : ask.stop)
    if (auto at = text.find(stop); at < first) {
      first = at;
      m.stop_sequence = stop;
    }
  if (first != std::string::npos) {
    text.resize(first);
    m.reply.tool_calls.clear();
    m.reply.finish_reason = "stop";
  }
  if (ask.max_tokens && text.size() / 4 > *ask.max_tokens) {
    text.resize(utf8_prefix(text, static_cast<std::size_t>(*ask.max_tokens * 4)).size());
    m.reply.tool_calls.clear();
    m.stop_sequence.clear();
    m.reply.finish_reason = "length";
  }
  auto& output = m.reply.usage.output;
  output -= std::min<std::uint64_t>(output, (before - text.size()) / 4);
}

bool is_answered_by_error(fault_kind kind, bool stream) {
  return kind == fault_kind::rate_limited || kind == fault_kind::overloaded
         || kind == fault_kind::server || kind == fault_kind::quota || kind == fault_kind::auth
         || kind == fault_kind::bad_request || kind == fault_kind::context_length
         || (kind == fault_kind::error_event && !stream);
}

/// Pieces that leave at the same moment leave together.
void join_pieces(mock_answer& answer) {
  std::vector<mock_piece> joined;
  for (auto& piece : answer.pieces)
    if (!joined.empty() && piece.wait <= micros{0})
      joined.back().bytes += piece.bytes;
    else
      joined.push_back(std::move(piece));
  answer.pieces = std::move(joined);
}

}  // namespace

/// One request on its way through the service.
struct mock_service::call {
  const mock_http_request& request;
  mock_time time;
  std::uint64_t in_flight;
  std::string id;
  rng random;
  mock_route to;
  const mock_wire& wire;
  mock_turn turn{};
  token_usage cost{};
  std::string model{};

  [[nodiscard]] std::string request_id() const { return "req_" + id; }
};

mock_service::mock_service(mock_script script, const mock_service_settings& settings,
                           mock_time start)
  : script_{std::move(script)}, settings_{settings}, start_{start.now},
    looks_at_last_{looks_at_last(script_.contents())},
    limits_{script_.contents().limits, start.now}, past_{past_bytes} {}

mock_turn mock_service::take(const mock_http_request& request, mock_time time,
                             std::uint64_t in_flight) {
  ++number_;
  auto to = mock_route_of(request.target);
  rng mix{settings_.seed};
  call c{request,
         time,
         in_flight,
         id_of(settings_.seed, number_),
         rng{mix.next() ^ number_ * 0xBF58476D1CE4E5B9u},
         to,
         mock_wire_of(to.what, request.headers)};
  c.turn.wire = &c.wire;
  c.turn.headers = {{"content-type", "application/json"},
                    {std::string{c.wire.request_id_header}, c.request_id()}};
  answer(c);
  c.turn.random = c.random;
  return std::move(c.turn);
}

void mock_service::answer(call& c) {
  if (auto refused = refusal(c))
    return fail_with(c, *refused);
  if (c.to.what == mock_resource::models)
    return list_models(c);
  auto ask = read_ask(c);
  if (!ask)
    return fail_with(c, ask.error());
  if (!knows(ask->model))
    return fail_with(c, {404,
                         "The model '" + ask->model
                           + "' does not exist or you do not have "
                             "access to it.",
                         "invalid_request_error", "model", "model_not_found"});
  reply_to(c, std::move(*ask));
}

/// What is wrong before the body is looked at.
std::optional<mock_error> mock_service::refusal(const call& c) const {
  auto line = std::string{c.request.method} + " " + std::string{c.request.target};
  if (c.to.what == mock_resource::none)
    return mock_error{404, "Invalid URL (" + line + ")"};
  auto wanted = c.to.what == mock_resource::models ? "GET" : "POST";
  if (c.request.method != wanted)
    return mock_error{405, "Not allowed to " + line + "; it takes " + wanted,
                      "invalid_request_error", "", "method_not_supported"};
  if (settings_.require_key && !has_key(c.request.headers))
    return mock_error{401,
                      "You didn't provide an API key. Send it as 'Authorization: Bearer KEY' or "
                      "'x-api-key: KEY'."};
  return std::nullopt;
}

tl::expected<mock_ask, mock_error> mock_service::read_ask(const call& c) const {
  auto whole = c.request.body;
  shortened_json body{whole.size() <= request_limits.max_bytes ? whole : std::string_view{}};
  auto parsed = parse_json(body.text(), request_limits);
  if (!parsed)  // again, for an error that tells the place in what was sent
    parsed = parse_json(whole, request_limits);
  if (!parsed || !parsed->is_object())
    return tl::unexpected(
      mock_error{400, "We could not parse the JSON body of your request: "
                        + (parsed ? "it is not an object" : parsed.error().detail)});
  auto ask = c.wire.read(*parsed);
  if (!ask)
    return ask;
  for (auto* text : {&ask->model, &ask->task, &ask->previous})
    *text = body.restored(*text);
  ask->last = looks_at_last_ ? body.restored(ask->last) : std::string{};
  for (auto& text : ask->stop)
    text = body.restored(text);
  return ask;
}

bool mock_service::knows(std::string_view model) const {
  auto& models = script_.contents().models;
  return models.empty() || std::find(models.begin(), models.end(), model) != models.end();
}

void mock_service::list_models(call& c) const {
  auto seconds = c.time.wall / 1'000'000;
  if (!c.to.rest.empty()) {
    if (!knows(c.to.rest))
      return fail_with(c, {404, "The model '" + std::string{c.to.rest} + "' does not exist",
                           "invalid_request_error", "model", "model_not_found"});
    c.turn.ready = dump_json(model_object(c.to.rest, seconds));
    return;
  }
  auto data = json::array();
  auto& models = script_.contents().models;
  if (models.empty())
    data.push_back(model_object("mock", seconds));
  for (auto& name : models)
    data.push_back(model_object(name, seconds));
  json out{{"object", "list"}, {"has_more", false}};
  out["first_id"] = data.front()["id"];
  out["last_id"] = data.back()["id"];
  out["data"] = std::move(data);
  c.turn.ready = dump_json(out);
}

/// Goes on from a reply that was given before. False when there is none of that id.
bool mock_service::go_on(call& c, mock_ask& ask) const {
  auto before = past_.find(ask.previous);
  if (!before) {
    fail_with(c, {400, "Previous response with id '" + ask.previous + "' not found.",
                  "invalid_request_error", "previous_response_id", "previous_response_not_found"});
    return false;
  }
  ask.task = std::move(before->task);
  ask.turn += before->turns;
  return true;
}

void mock_service::reply_to(call& c, mock_ask ask) {
  if (!ask.previous.empty() && !go_on(c, ask))
    return;
  c.model = ask.model;
  c.turn.stream = ask.stream;
  c.cost.input = c.request.body.size() / 4;
  auto drawn = script_.answer(
    {ask.task, ask.last, ask.model, ask.turn, c.cost.input, c.wire.call_prefix}, c.random);
  c.turn.latency = drawn.latency;
  if (drawn.reply) {
    say(c, std::move(ask), std::move(*drawn.reply));
  } else {
    auto& why = drawn.reply.error();
    c.turn.fault = mock_fault{fault_of(why.kind), 0.5, failure_pause, why.retry_after};
  }
  limit_or_strike(c);
}

void mock_service::say(call& c, mock_ask ask, model_reply reply) {
  mock_message m;
  m.reply = std::move(reply);
  m.id = c.id;
  m.created = c.time.wall / 1'000'000;
  m.include_usage = ask.include_usage;
  m.chunk_bytes = script_.contents().stream.chunk_bytes;
  bound_reply(ask, m);
  c.cost = m.reply.usage;
  if (c.to.what == mock_resource::responses)
    past_.keep("resp_" + c.id, {std::move(ask.task), ask.turn + 1});
  c.turn.message = std::move(m);
}

/// A request beyond a limit is turned away at once; else a fault may strike it.
void mock_service::limit_or_strike(call& c) {
  auto elapsed = std::chrono::duration_cast<millis>(c.time.now - start_);
  auto planned = plan_fault(script_.contents().faults, number_, elapsed, c.random);
  auto denied = limits_.admit(c.cost, c.in_flight, c.time.now, c.random);
  auto said = limits_.headers(c.wire.format, c.time.now, c.time.wall);
  c.turn.headers.insert(c.turn.headers.end(), said.begin(), said.end());
  if (denied)
    return deny(c, *denied);
  if (!c.turn.fault)
    c.turn.fault = planned;
  if (c.turn.fault)
    strike(c, *c.turn.fault);
}

void mock_service::deny(call& c, const mock_denial& denied) {
  c.turn.limited = true;
  c.turn.fault.reset();
  c.turn.latency = micros{0};
  if (denied.wait)
    add_retry_after(c.turn.headers, c.wire.format, *denied.wait);
  fail_with(c, error_of(denied, c.model));
}

void mock_service::strike(call& c, const mock_fault& fault) {
  if (fault.retry_after)
    add_retry_after(c.turn.headers, c.wire.format, *fault.retry_after);
  if (is_answered_by_error(fault.kind, c.turn.stream))
    fail_with(c, error_of(fault.kind, c.wire.format));
  else if (!c.turn.message)
    c.turn.ready = R"({"object":"nothing"})";  // for the fault to spoil
}

void mock_service::fail_with(call& c, const mock_error& e) {
  c.turn.status = e.status;
  c.turn.message.reset();
  c.turn.ready = error_body(c.wire.format, e, c.request_id());
}

/// The events of a streamed reply, each with its gap to the one before.
void mock_service::write_events(mock_turn& turn, mock_answer& out) const {
  out.streamed = true;
  out.headers[0].second = "text/event-stream; charset=utf-8";
  out.headers.emplace_back("cache-control", "no-cache");
  auto& gap = script_.contents().stream.gap;
  for (auto& event : turn.wire->events(*turn.message))
    out.pieces.push_back(
      {std::move(event), out.pieces.empty() ? micros{0} : gap.draw(turn.random)});
}

mock_answer mock_service::bytes_of(mock_turn turn) const {
  mock_answer out;
  out.status = turn.status;
  out.headers = std::move(turn.headers);
  if (turn.message && turn.stream)
    write_events(turn, out);
  else
    out.pieces.push_back({turn.message ? turn.wire->whole(*turn.message) : std::move(turn.ready)});
  if (turn.fault && !is_answered_by_error(turn.fault->kind, turn.stream)) {
    if (turn.fault->kind == fault_kind::gateway)
      out.status = 502;
    auto e = error_of(fault_kind::error_event, turn.wire->format);
    apply_fault(*turn.fault, error_event(turn.wire->format, e, out.headers[1].second), out);
  }
  join_pieces(out);
  return out;
}

}  // namespace troupe
