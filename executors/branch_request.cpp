#include "executors/branch_request.hpp"

#include <utility>

namespace troupe {
namespace {

error error_of(request_end& end) {
  if (end.reply)
    return {end.reply->kind, std::move(end.reply->failure)};
  switch (end.lost) {
  case snippet_end::hard_timeout:
    return {errc::timeout, "the branch was not there in time"};
  case snippet_end::memory:
    return {errc::over_budget, std::move(end.reason)};
  default:
    return {errc::unavailable, std::move(end.reason)};
  }
}

/// One frame, one answer.
class move_request final : public worker_request {
public:
  move_request(std::size_t count, time_point until, moved_fn done)
    : count_{count}, until_{until}, done_{std::move(done)} {}

  result<std::optional<std::string>> next(std::uint32_t id, worker::done* last) override {
    if (last != nullptr)
      return std::nullopt;
    return count_ > 0 ? worker::branch_frame(id, count_) : worker::take_frame(id);
  }

  void finish(request_end end) override {
    if (end.reply && end.reply->failure.empty())
      done_({});
    else
      done_(fail(error_of(end)));
  }

  time_point hard_deadline(time_point) const override { return until_; }
  bool takes_output() const override { return false; }

private:
  std::size_t count_;
  time_point until_;
  moved_fn done_;
};

}  // namespace

std::unique_ptr<worker_request> make_branch_request(std::size_t count, time_point until,
                                                    moved_fn done) {
  return std::make_unique<move_request>(count, until, std::move(done));
}

std::unique_ptr<worker_request> make_take_request(time_point until, moved_fn done) {
  return std::make_unique<move_request>(0, until, std::move(done));
}

}  // namespace troupe
