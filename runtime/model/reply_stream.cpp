#include "runtime/model/reply_stream.hpp"

#include "runtime/core/text.hpp"
#include "runtime/model/chat_text.hpp"
#include "runtime/model/reply_reader.hpp"

#include <utility>

namespace troupe {
namespace {

/// A whole reply may stand in one event (the Responses API's last).
constexpr std::size_t max_event_bytes = 32u << 20;
constexpr std::size_t max_body_bytes = 64u << 20;
constexpr std::size_t shown_of_body = 160;
constexpr std::size_t longest_blank_start = 4096;

model_failure bad(std::string detail) {
  return bad_reply(std::move(detail)).value();
}

}  // namespace

reply_stream::reply_stream(const codec& format, std::shared_ptr<const model_settings> settings)
  : format_{format}, settings_{std::move(settings)}, assembler_{format.assembler()},
    splitter_{max_event_bytes}, stops_{settings_->stop} {}

std::vector<model_delta> reply_stream::feed(std::string_view bytes) {
  std::vector<model_delta> seen;
  if (complete())
    return seen;
  if (shape_ != shape::unknown) {
    take_bytes(bytes, seen);
    return seen;
  }
  start_ += bytes;
  auto text = trim(start_);
  if (text.empty() && start_.size() < longest_blank_start)
    return seen;
  auto first = text.empty() ? ' ' : text.front();
  shape_ = first == '{' || first == '[' || first == '<' ? shape::one_piece : shape::events;
  take_bytes(std::exchange(start_, {}), seen);
  return seen;
}

void reply_stream::take_bytes(std::string_view bytes, std::vector<model_delta>& seen) {
  if (shape_ == shape::one_piece) {
    if (body_.size() + bytes.size() > max_body_bytes)
      failure_ = bad("the reply is longer than " + std::to_string(max_body_bytes) + " bytes");
    else
      body_ += bytes;
    return;
  }
  if (body_.size() < shown_of_body)
    body_ += bytes.substr(0, shown_of_body);
  std::vector<sse_event> events;
  auto split = splitter_.feed(bytes, events);
  take_events(events, seen);
  if (!split && !complete())
    failure_ = bad(split.error().detail);
}

bool reply_stream::complete() const noexcept {
  return failure_.has_value() || assembler_->complete();
}

model_outcome reply_stream::finish(std::optional<model_failure> broken,
                                   std::vector<model_delta>& seen) {
  std::vector<sse_event> events;
  if (!complete() && !broken && splitter_.feed_end(events))
    take_events(events, seen);
  auto got = outcome(std::move(broken));
  if (!got)
    return got;
  enforce(*settings_, *got);
  // The text may all stand in the answer's only piece, or in its last event.
  auto rest = text_seen_ ? stops_.rest() : got->text;
  if (!rest.empty())
    seen.push_back({model_delta::kind::text, std::move(rest), 0, {}});
  return got;
}

void reply_stream::take_events(const std::vector<sse_event>& events,
                               std::vector<model_delta>& seen) {
  for (auto& event : events) {
    if (complete())
      return;
    ++events_;
    std::vector<model_delta> pieces;
    auto taken = may_have_surrogates(event.data)
                   ? assembler_->take({event.name, joiner_.mend(event.data)}, pieces)
                   : assembler_->take(event, pieces);
    filter(std::move(pieces), seen);
    if (!taken)
      failure_ = std::move(taken.error());
  }
}

/// What comes after a stop sequence is no part of the reply.
void reply_stream::filter(std::vector<model_delta> pieces, std::vector<model_delta>& seen) {
  for (auto& piece : pieces) {
    if (piece.what == model_delta::kind::text) {
      text_seen_ = true;
      piece.text = stops_.feed(piece.text);
    } else if (piece.what == model_delta::kind::tool_call && stops_.stopped()) {
      piece = {};
    }
    if (!piece.text.empty() || piece.what == model_delta::kind::tool_call)
      seen.push_back(std::move(piece));
  }
}

model_outcome reply_stream::outcome(std::optional<model_failure> broken) {
  if (failure_)
    return tl::unexpected(*std::move(failure_));
  // Of a reply that has ended, a broken connection may have taken what nobody needs.
  if (shape_ == shape::events && assembler_->ended())
    return assembler_->finish();
  if (broken)
    return tl::unexpected(*std::move(broken));
  if (shape_ == shape::events)
    return tl::unexpected(ended_early());
  return format_.decode(body_);
}

model_failure reply_stream::ended_early() const {
  if (events_ == 0)
    return bad("the reply is neither JSON nor a stream of events: "
               + one_line(body_.empty() ? start_ : body_, shown_of_body));
  return bad("the stream ended before the reply did, after " + std::to_string(events_) + " events");
}

}  // namespace troupe
