#include "runtime/model/cassette.hpp"

#include "runtime/core/digest.hpp"
#include "runtime/model/json_difference.hpp"
#include "runtime/model/reply_json.hpp"
#include "runtime/model/secrets.hpp"

#include <algorithm>
#include <unordered_map>

namespace troupe {
namespace {

constexpr std::int64_t version = 1;
constexpr std::size_t shown_differences = 4;
constexpr json_limits line_limits{256u << 20, 128};

// Members that hold the conversation, in all wire formats.
constexpr std::string_view conversation[] = {"system", "instructions", "messages", "input"};

// Members that differ from one recording to the next, and say nothing.
constexpr std::string_view incidental[] = {
  "id",        "call_id",           "tool_call_id", "tool_use_id", "cache_control",
  "signature", "encrypted_content", "status"};

struct exchange {
  std::size_t line = 0;
  std::string target;
  json request;
  std::vector<std::string> messages;  ///< digests, for the nearest one
  model_outcome outcome = tl::unexpected(model_failure{});
};

std::string one_spaced(std::string_view text) {
  std::string out;
  for (auto c : text) {
    auto space = c == ' ' || (c >= '\t' && c <= '\r');
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  if (out.ends_with(' '))
    out.pop_back();
  return out;
}

json without_incidentals(const json& value) {
  if (value.is_string())
    return one_spaced(value.get_ref<const std::string&>());
  if (!value.is_structured())
    return value;
  auto out = value.is_array() ? json::array() : json::object();
  if (value.is_array())
    for (const auto& element : value)
      out.push_back(without_incidentals(element));
  else
    for (const auto& [name, member] : value.items())
      if (std::find(std::begin(incidental), std::end(incidental), name) == std::end(incidental))
        out[name] = without_incidentals(member);
  return out;
}

json conversation_of(const json& request) {
  auto out = json::object();
  for (auto name : conversation)
    if (auto it = request.find(name); it != request.end())
      out[std::string{name}] = without_incidentals(*it);
  return out;
}

/// The messages one by one, however the format calls them.
std::vector<std::string> digests(const json& request) {
  std::vector<std::string> out;
  for (auto name : conversation) {
    auto it = request.find(name);
    if (it == request.end())
      continue;
    if (!it->is_array())
      out.push_back(sha256_hex(dump_json(*it)));
    else
      for (const auto& message : *it)
        out.push_back(sha256_hex(dump_json(message)));
  }
  return out;
}

std::string match_key(cassette_match how, const std::string& target, const json& request) {
  return sha256_hex(how == cassette_match::exact ? target + '\n' + dump_json(request)
                                                 : dump_json(conversation_of(request)));
}

tl::unexpected<error> bad_line(const std::string& name, std::size_t line, const std::string& what) {
  return fail(errc::corrupt, name + ", line " + std::to_string(line) + ": " + what);
}

result<model_outcome> outcome_from(const json& line) {
  if (auto it = line.find("reply"); it != line.end()) {
    auto reply = reply_from_json(*it);
    if (!reply)
      return fail(reply.error());
    return model_outcome{*std::move(reply)};
  }
  auto it = line.find("failure");
  if (it == line.end())
    return fail(errc::corrupt, "there is neither \"reply\" nor \"failure\"");
  auto failure = failure_from_json(*it);
  if (!failure)
    return fail(failure.error());
  return model_outcome{tl::unexpected(*std::move(failure))};
}

result<exchange> read_exchange(std::string_view text) {
  auto line = parse_json(text, line_limits);
  if (!line)
    return fail(line.error());
  auto request = line->is_object() ? line->find("request") : line->end();
  if (request == line->end() || !request->is_object())
    return fail(errc::corrupt, "\"request\" is not an object");
  auto outcome = outcome_from(*line);
  if (!outcome)
    return fail(outcome.error());
  exchange x;
  x.target = string_or(*line, "where");
  x.request = std::move(*request);
  x.messages = digests(x.request);
  x.outcome = *std::move(outcome);
  // It costs nobody anything now.
  if (x.outcome)
    x.outcome->attempts = 0;
  else
    x.outcome.error().attempts = 0;
  return x;
}

result<void> check_head(std::string_view text, const std::string& name) {
  auto head = parse_json(text);
  auto is_one = head && head->is_object() && head->contains("troupe_cassette");
  if (!is_one || !(*head)["troupe_cassette"].is_number_integer())
    return bad_line(name, 1,
                    "this is no cassette: it does not begin with {\"troupe_cassette\": 1}");
  if ((*head)["troupe_cassette"].get<std::int64_t>() > version)
    return fail(errc::invalid_argument,
                name + " is a cassette of a newer version of troupe: use that one to play it");
  return {};
}

/// Splits off the first line, without its line feed.
std::string_view take_line(std::string_view& text) {
  auto end = text.find('\n');
  auto line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

class player final : public cassette_player {
public:
  player(std::string name, cassette_match how, std::vector<std::string> known)
    : name_{std::move(name)}, how_{how}, known_{std::move(known)} {}

  void add(exchange x) {
    by_key_[match_key(how_, x.target, x.request)].at.push_back(all_.size());
    all_.push_back(std::move(x));
  }

  void hide(const std::vector<std::string>& secrets) override {
    known_.insert(known_.end(), secrets.begin(), secrets.end());
  }

  model_outcome play(const request_identity& asked) override {
    auto request = parse_json(without_secrets(asked.body, known_), line_limits);
    if (!request)
      return miss("the request is not JSON: " + request.error().detail);
    auto found = by_key_.find(match_key(how_, asked.target, *request));
    if (found == by_key_.end())
      return miss(nearest_to(*request, asked.target));
    auto& [at, next] = found->second;
    if (next >= at.size() && how_ == cassette_match::exact)
      return miss("the " + std::to_string(at.size()) + " recorded for this request (line "
                  + std::to_string(all_[at.back()].line)
                  + ") are used up; --replay-match loose would begin again");
    return all_[at[next++ % at.size()]].outcome;
  }

  std::size_t size() const override { return all_.size(); }

private:
  struct place {
    std::vector<std::size_t> at;
    std::size_t next = 0;
  };

  model_outcome miss(const std::string& why) const {
    return tl::unexpected(model_failure{
      failure_class::unknown, name_ + " has no reply for this request: " + why, {}, 0});
  }

  /// The one with most messages in common from the first, then with the nearest number of them.
  std::string nearest_to(const json& request, const std::string& target) const {
    if (all_.empty())
      return "nothing was recorded";
    auto wanted = digests(request);
    auto distance = [&](const exchange& x) {
      auto differs =
        std::mismatch(wanted.begin(), wanted.end(), x.messages.begin(), x.messages.end());
      auto common = differs.first - wanted.begin();
      auto extra = static_cast<std::ptrdiff_t>(x.messages.size() - wanted.size());
      return std::pair{-common, std::abs(extra)};
    };
    const auto& best =
      *std::min_element(all_.begin(), all_.end(),
                        [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
    auto out = "the nearest one, line " + std::to_string(best.line) + ", differs:";
    if (best.target != target)
      out += "\n  it was for " + best.target + ", this is for " + target;
    auto loose = how_ == cassette_match::loose;
    for (const auto& line : loose ? differences(conversation_of(best.request),
                                                conversation_of(request), shown_differences)
                                  : differences(best.request, request, shown_differences))
      out += "\n  " + line;
    return out;
  }

  std::string name_;
  cassette_match how_;
  std::vector<std::string> known_;
  std::vector<exchange> all_;
  std::unordered_map<std::string, place> by_key_;
};

}  // namespace

std::string cassette_head() {
  return dump_json({{"troupe_cassette", version}}) + '\n';
}

std::string cassette_line(const request_identity& request, const model_outcome& outcome,
                          const std::vector<std::string>& known) {
  ordered_json line{{"where", request.target}};
  auto body = parse_json(request.body, line_limits);
  line["request"] = body ? ordered_json::parse(dump_json(*body)) : ordered_json::object();
  auto answer = outcome ? to_json(*outcome) : to_json(outcome.error());
  answer.erase("attempts");
  answer.erase("latency_ms");
  line[outcome ? "reply" : "failure"] = ordered_json::parse(dump_json(answer));
  return without_secrets(line.dump(-1, ' ', false, ordered_json::error_handler_t::replace), known)
         + '\n';
}

result<std::unique_ptr<cassette_player>> cassette_player::load(std::string_view text,
                                                               const std::string& name,
                                                               cassette_match how,
                                                               std::vector<std::string> known) {
  if (auto head = check_head(take_line(text), name); !head)
    return fail(head.error());
  auto out = std::make_unique<player>(name, how, std::move(known));
  auto ends_whole = text.ends_with('\n');
  for (std::size_t number = 2; !text.empty(); ++number) {
    auto line = take_line(text);
    if (line.find_first_not_of(" \t\r") == line.npos)
      continue;
    auto x = read_exchange(line);
    if (!x && text.empty() && !ends_whole && !parse_json(line))
      break;  // a kill or a full disk has cut it: all before it is good
    if (!x)
      return bad_line(name, number, x.error().detail);
    x->line = number;
    out->add(*std::move(x));
  }
  return std::unique_ptr<cassette_player>{std::move(out)};
}

}  // namespace troupe
