#include "actors/endpoint.hpp"

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

class http_endpoint final : public endpoint {
public:
  http_endpoint(http_client& client, const codec& format, http_endpoint_options options)
    : client_{client}, format_{format}, options_{std::move(options)},
      target_{options_.base.path + std::string{format.path()}} {
    headers_ = options_.headers;
    headers_.emplace_back("content-type", "application/json");
    headers_.emplace_back("accept", "application/json");
    for (auto& h : format_.authorize(options_.key))
      headers_.push_back(std::move(h));
  }

  ticket ask(const model_request& request, time_point deadline, done_fn done) override {
    return client_.send(
      make_request(request), deadline,
      [this, done = std::move(done)](auto response) { done(read(std::move(response))); });
  }

  void cancel(ticket which) override { client_.cancel(which); }

  message_encoder encoder() const override { return format_.encoder(); }

private:
  http_request make_request(const model_request& request) const {
    auto body = format_.encode(request);
    auto head = std::make_shared<const std::string>(std::move(body.head));
    auto tail = std::make_shared<const std::string>(std::move(body.tail));
    http_request out;
    out.to = options_.base;
    out.target = target_;
    out.headers = headers_;
    out.body = body.messages.pieces();
    out.body.insert(out.body.begin(), *head);
    out.body.emplace_back(*tail);
    out.owners = {std::move(head), std::move(body.messages.last), std::move(tail)};
    return out;
  }

  tl::expected<model_reply, model_failure>
  read(tl::expected<http_response, http_failure> response) const {
    if (!response) {
      auto& why = response.error().what;
      return tl::unexpected(model_failure{class_of(why.code), std::move(why.detail), {}, 1});
    }
    if (response->status / 100 != 2)
      return tl::unexpected(format_.classify(response->status, response->headers, response->body));
    return format_.decode(response->body);
  }

  http_client& client_;
  const codec& format_;
  http_endpoint_options options_;
  std::string target_;
  header_list headers_;
};

class mock_endpoint final : public endpoint {
public:
  mock_endpoint(mock_script script, timers& clock, std::uint64_t seed)
    : script_{std::move(script)}, clock_{clock}, random_{seed} {}

  ticket ask(const model_request& request, time_point deadline, done_fn done) override {
    auto drawn = draw(request);
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

std::shared_ptr<endpoint> make_http_endpoint(http_client& client, const codec& format,
                                             http_endpoint_options options) {
  return std::make_shared<http_endpoint>(client, format, std::move(options));
}

std::shared_ptr<endpoint> make_mock_endpoint(mock_script script, timers& clock,
                                             std::uint64_t seed) {
  return std::make_shared<mock_endpoint>(std::move(script), clock, seed);
}

}  // namespace troupe
