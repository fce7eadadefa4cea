#include "actors/endpoint.hpp"

#include "runtime/model/rate_headers.hpp"
#include "runtime/model/reply_stream.hpp"

#include <mutex>
#include <unordered_map>

namespace troupe {
namespace {

failure_class class_of(errc code) {
  switch (code) {
  case errc::timeout:
    return failure_class::timeout;
  case errc::unavailable:
    return failure_class::connect;
  case errc::cancelled:
    return failure_class::cancelled;
  case errc::corrupt:
  case errc::over_budget:
    return failure_class::bad_reply;
  default:
    return failure_class::unknown;
  }
}

model_failure failure_of(http_failure failure) {
  auto& why = failure.what;
  return {class_of(why.code), std::move(why.detail), {}, 1};
}

/// What the server states of its limits goes up with every answer, good or bad.
model_outcome with_rates(model_outcome outcome, const header_list& headers) {
  (outcome ? outcome->rates : outcome.error().rates) = rates_stated(headers);
  return outcome;
}

model_outcome refusal(const codec& format, const http_response& response) {
  return with_rates(
    tl::unexpected(format.classify(response.status, response.headers, response.body)),
    response.headers);
}

/// One streamed try, from its bytes to its outcome.
struct streamed_try {
  streamed_try(const codec& format, std::shared_ptr<const model_settings> settings,
               endpoint::seen_fn show)
    : reply{format, std::move(settings)}, seen{std::move(show)} {}

  bool take(std::string_view bytes) {
    if (auto pieces = reply.feed(bytes); !pieces.empty())
      seen(std::move(pieces));
    return !reply.complete();
  }

  model_outcome end(std::optional<model_failure> broken) {
    std::vector<model_delta> last;
    auto outcome = reply.finish(std::move(broken), last);
    if (!last.empty())
      seen(std::move(last));
    return outcome;
  }

  reply_stream reply;
  endpoint::seen_fn seen;
};

class http_endpoint final : public endpoint {
public:
  http_endpoint(http_client& client, std::shared_ptr<const codec> format,
                http_endpoint_options options)
    : client_{client}, format_{std::move(format)}, options_{std::move(options)} {
    headers_ = options_.headers;
    headers_.emplace_back("content-type", "application/json");
    for (auto& h : format_->headers(options_.key))
      headers_.push_back(std::move(h));
  }

  ticket ask(const model_request& request, time_point deadline, seen_fn seen,
             done_fn done) override {
    if (seen)
      return ask_streamed(request, deadline, std::move(seen), std::move(done));
    return client_.send(make_request(request, delivery::whole), deadline,
                        [format = format_, settings = request.settings, done = std::move(done)](
                          auto response) { done(read(*format, *settings, std::move(response))); });
  }

  void cancel(ticket which) override { client_.cancel(which); }

  message_encoder encoder() const override { return format_->encoder(); }

private:
  ticket ask_streamed(const model_request& request, time_point deadline, seen_fn seen,
                      done_fn done) {
    auto reading = std::make_shared<streamed_try>(*format_, request.settings, std::move(seen));
    http_stream how{[reading](std::string_view bytes) { return reading->take(bytes); },
                    options_.silence};
    return client_.send(make_request(request, delivery::streamed), deadline, std::move(how),
                        [format = format_, reading, done = std::move(done)](auto response) {
                          if (!response)
                            done(reading->end(failure_of(std::move(response.error()))));
                          else if (response->status / 100 != 2)
                            done(refusal(*format, *response));
                          else
                            done(with_rates(reading->end(std::nullopt), response->headers));
                        });
  }

  http_request make_request(const model_request& request, delivery how) const {
    auto body = format_->encode(request, how);
    auto head = std::make_shared<const std::string>(std::move(body.head));
    auto tail = std::make_shared<const std::string>(std::move(body.tail));
    http_request out;
    out.to = options_.base;
    out.target = options_.base.path + body.target;
    out.headers = headers_;
    out.headers.emplace_back("accept",
                             how == delivery::streamed ? "text/event-stream" : "application/json");
    out.body = body.messages.pieces();
    out.body.insert(out.body.begin(), *head);
    out.body.emplace_back(*tail);
    out.owners = {std::move(head), std::move(body.messages.last), std::move(tail)};
    return out;
  }

  static model_outcome read(const codec& format, const model_settings& settings,
                            tl::expected<http_response, http_failure> response) {
    if (!response)
      return tl::unexpected(failure_of(std::move(response.error())));
    if (response->status / 100 != 2)
      return refusal(format, *response);
    auto reply = format.decode(response->body);
    if (reply)
      enforce(settings, *reply);
    return with_rates(std::move(reply), response->headers);
  }

  http_client& client_;
  std::shared_ptr<const codec> format_;
  http_endpoint_options options_;
  header_list headers_;
};

class mock_endpoint final : public endpoint {
public:
  mock_endpoint(mock_script script, timers& clock, std::uint64_t seed)
    : script_{std::move(script)}, clock_{clock}, random_{seed} {}

  ticket ask(const model_request& request, time_point deadline, seen_fn seen,
             done_fn done) override {
    auto drawn = draw(request);
    if (seen)
      done = showing(std::move(seen), std::move(done));
    if (drawn.latency <= micros{0}) {
      done(std::move(drawn.reply));
      return 0;
    }
    if (clock_.now() + drawn.latency > deadline) {
      drawn.latency = std::chrono::duration_cast<micros>(deadline - clock_.now());
      drawn.reply = tl::unexpected(model_failure{
        failure_class::timeout, "the mock model was slower than the deadline", {}, 1});
    }
    return wait(std::move(drawn), std::move(done));
  }

  [[nodiscard]] bool in_process() const override { return true; }

  void cancel(ticket which) override {
    auto call = take(which);
    if (!call)
      return;
    clock_.cancel(call->timer);
    call->done(tl::unexpected(model_failure{failure_class::cancelled, "cancelled", {}, 1}));
  }

  message_encoder encoder() const override { return openai_codec().encoder(); }

private:
  struct waiting {
    timer_id timer = 0;
    mock_script::drawn drawn;
    done_fn done;
  };

  /// A scripted reply comes in one piece.
  static done_fn showing(seen_fn seen, done_fn done) {
    return [seen = std::move(seen), done = std::move(done)](model_outcome outcome) {
      if (outcome && !outcome->text.empty())
        seen({{model_delta::kind::text, outcome->text, 0, {}}});
      done(std::move(outcome));
    };
  }

  mock_script::drawn draw(const model_request& request) {
    // One random stream for all calls: its lock is held for the draw of a seed only.
    std::unique_lock lock{mutex_};
    rng own{random_.next()};
    lock.unlock();
    return script_.answer(request, own);
  }

  ticket wait(mock_script::drawn drawn, done_fn done) {
    std::lock_guard lock{mutex_};
    auto id = ++last_;
    auto delay = drawn.latency;
    auto& call = calls_[id];
    call = {0, std::move(drawn), std::move(done)};
    call.timer = clock_.in(delay, [this, id] {
      if (auto due = take(id))
        due->done(std::move(due->drawn.reply));
    });
    return id;
  }

  std::optional<waiting> take(ticket which) {
    std::lock_guard lock{mutex_};
    auto node = calls_.extract(which);
    if (node.empty())
      return std::nullopt;
    return std::move(node.mapped());
  }

  mock_script script_;
  timers& clock_;
  std::mutex mutex_;
  rng random_;
  ticket last_ = 0;
  std::unordered_map<ticket, waiting> calls_;
};

}  // namespace

std::shared_ptr<endpoint> make_http_endpoint(http_client& client,
                                             std::shared_ptr<const codec> format,
                                             http_endpoint_options options) {
  return std::make_shared<http_endpoint>(client, std::move(format), std::move(options));
}

std::shared_ptr<endpoint> make_mock_endpoint(mock_script script, timers& clock,
                                             std::uint64_t seed) {
  return std::make_shared<mock_endpoint>(std::move(script), clock, seed);
}

}  // namespace troupe
