#include "actors/shared_box.hpp"

#include "actors/caf_glue.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

caf::result<snippet_answer> shared_box::on_run(lent_run x) {
  auto answer = core_.self->make_response_promise<snippet_answer>();
  turns_.push_back({std::move(x), answer, core_.now()});
  if (turns_.size() == 1)
    begin_next();
  return answer;
}

void shared_box::begin_next() {
  if (turns_.empty())
    return;
  auto& t = turns_.front();
  delay(t.what.code, core_.now() - t.since);
  code_.run(std::move(t.what.code),
            [this](result<snippet_outcome> o) { on_outcome(std::move(o)); });
}

void shared_box::on_outcome(result<snippet_outcome> o) {
  auto t = std::move(turns_.front());
  turns_.pop_front();
  if (!t.unwanted && o)
    t.answer.deliver(snippet_answer{*std::move(o)});
  else if (!t.unwanted)
    t.answer.deliver(glue::to_caf(o.error()));
  begin_next();
}

void shared_box::on_end(run_id run) {
  for (std::size_t i = turns_.size(); i-- > 1;)
    if (turns_[i].what.run == run)
      turns_.erase(turns_.begin() + static_cast<std::ptrdiff_t>(i));
  if (turns_.empty() || turns_.front().what.run != run || turns_.front().unwanted)
    return;
  turns_.front().unwanted = true;
  code_.interrupt();  // code that goes on meets its hard deadline
}

void shared_box::on_wanted(tool_wanted x) {
  if (turns_.empty() || turns_.front().unwanted)
    glue::post(x.sandbox, tool_answer{x.call.id, fail(errc::cancelled, "nobody waits for it")});
  else
    glue::post(turns_.front().what.agent, std::move(x));
}

void shared_box::on_output(const output_seen& x) {
  if (!turns_.empty() && !turns_.front().unwanted)
    glue::post(turns_.front().what.agent, x);
}

}  // namespace troupe
