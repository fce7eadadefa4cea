#include "runtime/model/mock_faults.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 17> names = {
  "rate_limited", "overloaded",  "server",         "gateway", "timeout",    "quota",
  "auth",         "bad_request", "context_length", "reset",   "drop",       "cut",
  "truncated",    "wrong_type",  "stall",          "slow",    "error_event"};

bool holds(const fault_rule& rule, std::uint64_t number, millis elapsed) {
  if (rule.every > 0 && (number - 1) % rule.every >= rule.burst)
    return false;
  return rule.every_span <= millis{0} || elapsed % rule.every_span < rule.burst_span;
}

std::size_t body_bytes(const mock_answer& answer) {
  std::size_t sum = 0;
  for (auto& p : answer.pieces)
    sum += p.bytes.size();
  return sum;
}

/// Keeps the first `bytes` of the body.
void shorten(mock_answer& answer, std::size_t bytes) {
  auto piece = answer.pieces.begin();
  for (; piece != answer.pieces.end() && piece->bytes.size() <= bytes; ++piece)
    bytes -= piece->bytes.size();
  if (piece == answer.pieces.end())
    return;
  piece->bytes.resize(bytes);
  answer.pieces.erase(bytes > 0 ? std::next(piece) : piece, answer.pieces.end());
}

/// Keeps the pieces that end within the first `bytes`: events stay whole.
void shorten_to_piece(mock_answer& answer, std::size_t bytes) {
  auto piece = answer.pieces.begin();
  for (; piece != answer.pieces.end() && piece->bytes.size() <= bytes; ++piece)
    bytes -= piece->bytes.size();
  answer.pieces.erase(piece, answer.pieces.end());
}

/// Parts the body at `bytes`, so that what follows comes `pause` later.
void pause_at(mock_answer& answer, std::size_t bytes, millis pause) {
  answer.streamed = true;
  for (auto piece = answer.pieces.begin(); piece != answer.pieces.end(); ++piece) {
    if (bytes >= piece->bytes.size()) {
      bytes -= piece->bytes.size();
      continue;
    }
    mock_piece rest{piece->bytes.substr(bytes), pause};
    piece->bytes.resize(bytes);
    answer.pieces.insert(std::next(piece), std::move(rest));
    return;
  }
}

void drip(mock_answer& answer, millis pause) {
  constexpr std::size_t drips = 8;
  answer.streamed = true;
  if (answer.pieces.size() == 1) {
    auto all = std::move(answer.pieces.front());
    answer.pieces.clear();
    auto step = std::max<std::size_t>(1, all.bytes.size() / drips);
    for (std::size_t from = 0; from < all.bytes.size(); from += step)
      answer.pieces.push_back({all.bytes.substr(from, step), from == 0 ? all.wait : micros{0}});
  }
  for (auto& p : answer.pieces)
    p.wait += pause;
}

void replace_by_page(mock_answer& answer) {
  answer.streamed = false;
  std::erase_if(answer.headers, [](auto& h) { return h.first == "content-type"; });
  answer.headers.emplace_back("content-type", "text/html; charset=utf-8");
  answer.pieces = {{"<!DOCTYPE html>\n<html><head><title>Gateway</title></head>"
                    "<body><h1>Something is in between</h1></body></html>\n"}};
}

}  // namespace

std::string_view to_string(fault_kind kind) noexcept {
  return names[static_cast<std::size_t>(kind)];
}

std::optional<fault_kind> fault_kind_from(std::string_view name) noexcept {
  auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end())
    return std::nullopt;
  return static_cast<fault_kind>(std::distance(names.begin(), it));
}

std::vector<std::string_view> fault_kind_names() {
  return {names.begin(), names.end()};
}

fault_kind fault_of(failure_class kind) noexcept {
  switch (kind) {
  case failure_class::connect:
    return fault_kind::reset;
  case failure_class::timeout:
    return fault_kind::timeout;
  case failure_class::rate_limited:
    return fault_kind::rate_limited;
  case failure_class::overloaded:
    return fault_kind::overloaded;
  case failure_class::bad_reply:
    return fault_kind::truncated;
  case failure_class::quota:
  case failure_class::budget:
    return fault_kind::quota;
  case failure_class::auth:
    return fault_kind::auth;
  case failure_class::bad_request:
    return fault_kind::bad_request;
  case failure_class::context_length:
    return fault_kind::context_length;
  case failure_class::cancelled:
    return fault_kind::drop;
  case failure_class::server:
  case failure_class::unknown:
    break;
  }
  return fault_kind::server;
}

std::optional<mock_fault> plan_fault(const std::vector<fault_rule>& rules, std::uint64_t number,
                                     millis elapsed, rng& random) {
  std::optional<mock_fault> found;
  for (auto& rule : rules) {
    auto strikes = random.uniform() < rule.rate;
    auto at = random.uniform();
    if (!found && strikes && holds(rule, number, elapsed))
      found = mock_fault{rule.kind, rule.at.value_or(at), rule.pause, rule.retry_after};
  }
  return found;
}

void apply_fault(const mock_fault& fault, std::string_view error_event, mock_answer& answer) {
  auto where = static_cast<std::size_t>(fault.at * static_cast<double>(body_bytes(answer)));
  switch (fault.kind) {
  case fault_kind::timeout:
    answer.hang = fault.pause;
    [[fallthrough]];
  case fault_kind::drop:
    answer.no_answer = true;
    answer.end = mock_answer::ending::cut;
    break;
  case fault_kind::reset:
    answer.no_answer = true;
    answer.end = mock_answer::ending::reset;
    break;
  case fault_kind::cut:
    shorten(answer, where);
    answer.end = mock_answer::ending::cut;
    answer.streamed = true;
    break;
  case fault_kind::truncated:
    if (answer.streamed)
      shorten_to_piece(answer, where);
    else
      shorten(answer, where);
    break;
  case fault_kind::wrong_type:
  case fault_kind::gateway:
    replace_by_page(answer);
    break;
  case fault_kind::stall:
    pause_at(answer, where, fault.pause);
    break;
  case fault_kind::slow:
    drip(answer, fault.pause);
    break;
  case fault_kind::error_event:
    shorten_to_piece(answer, where);
    answer.pieces.push_back({std::string{error_event}});
    break;
  default:
    break;
  }
}

}  // namespace troupe
