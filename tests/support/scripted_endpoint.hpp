#pragma once
// A model endpoint whose replies are a list; it can hang, fail and be cancelled.

#include "actors/endpoint.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::test {

class scripted_endpoint final : public endpoint {
public:
  using answer_fn = std::function<std::string(const model_request&)>;

  explicit scripted_endpoint(std::vector<std::string> replies) {
    for (auto& text : replies)
      replies_.emplace_back().text = std::move(text);
  }
  explicit scripted_endpoint(std::vector<model_reply> replies)
    : replies_{replies.begin(), replies.end()} {}
  explicit scripted_endpoint(answer_fn answer) : answer_{std::move(answer)} {}

  ticket ask(const model_request& request, time_point, seen_fn seen, done_fn done) override {
    requests.emplace_back(request.messages.text());
    if (before)
      before(request);
    if (hang) {
      held.emplace_back(++last_, std::move(done));
      return last_;
    }
    model_reply r;
    if (answer_) {
      r.text = answer_(request);
    } else if (replies_.empty()) {
      done(tl::unexpected(model_failure{failure_class::bad_request, "no reply is left", {}, 1}));
      return ++last_;
    } else {
      r = std::move(replies_.front());
      replies_.pop_front();
    }
    r.model = "scripted-1";
    r.usage = {10, 5, 0, 0};
    if (seen)
      seen({{model_delta::kind::text, r.text, 0, {}}});
    done(std::move(r));
    return ++last_;
  }

  void cancel(ticket which) override {
    ++cancels;
    for (auto& [id, done] : held)
      if (id == which && done)
        std::exchange(done, nullptr)(
          tl::unexpected(model_failure{failure_class::cancelled, "cancelled", {}, 1}));
  }

  message_encoder encoder() const override { return openai_codec().encoder(); }

  std::vector<std::string> requests;
  std::vector<std::pair<ticket, done_fn>> held;
  int cancels = 0;
  bool hang = false;
  std::function<void(const model_request&)> before;  ///< may be empty

private:
  std::deque<model_reply> replies_;
  answer_fn answer_;
  ticket last_ = 0;
};

}  // namespace troupe::test
