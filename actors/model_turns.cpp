#include "actors/model_turns.hpp"

#include "actors/ask_again.hpp"
#include "runtime/core/text.hpp"
#include "runtime/model/reply_json.hpp"

#include <utility>

namespace troupe {
namespace {

json shown(const model_settings& s) {
  json what{{"model", s.model}, {"extra_body", s.extra_body}};
  if (s.temperature)
    what["temperature"] = *s.temperature;
  if (s.max_output_tokens)
    what["max_output_tokens"] = *s.max_output_tokens;
  if (s.seed)
    what["seed"] = *s.seed;
  return what;
}

std::shared_ptr<const model_settings> changed_settings(model_settings s, const json& changed) {
  if (changed.contains("temperature"))
    s.temperature = changed["temperature"].get<double>();
  if (changed.contains("max_output_tokens"))
    s.max_output_tokens = changed["max_output_tokens"].get<std::uint32_t>();
  if (changed.contains("seed"))
    s.seed = changed["seed"].get<std::int64_t>();
  if (changed.contains("extra_body"))
    s.extra_body = changed["extra_body"];
  return std::make_shared<const model_settings>(std::move(s));
}

}  // namespace

void model_turns::begin(ask_model x) {
  if (!paused_ || steps_ > 0) {
    steps_ -= paused_ ? 1 : 0;
    ask_by_leave(std::move(x.request));
    return;
  }
  held_ = std::make_unique<ask_model>(std::move(x));
  core_.log.show("paused", json{{"step", core_.machine.step()}});
}

void model_turns::on_gate(run_pace how) {
  paused_ = how != run_pace::resume;
  steps_ = how == run_pace::step ? steps_ + 1 : 0;
  if (held_ && (!paused_ || steps_ > 0))
    begin(*std::exchange(held_, nullptr));
}

void model_turns::ask_by_leave(model_request request) {
  if (!core_.hooked(hook_point::before_step) && !core_.hooked(hook_point::before_model)) {
    ask(std::move(request));
    return;
  }
  asked_ = core_.now();
  core_.by_leave(
    hook_point::before_step, json::object(),
    [this, mine = ++core_.effect, request = std::move(request)](const hook_verdict& v) mutable {
      if (mine != core_.effect)
        return;
      if (v.vetoed)
        refuse(v.reason);
      else
        ask_as_allowed(std::move(request));
    });
}

void model_turns::ask_as_allowed(model_request request) {
  auto what = shown(*request.settings);
  core_.by_leave(
    hook_point::before_model, std::move(what),
    [this, mine = core_.effect, request = std::move(request)](const hook_verdict& v) mutable {
      if (mine != core_.effect)
        return;
      if (v.vetoed) {
        refuse(v.reason);
        return;
      }
      if (!v.changed.is_null())
        request.settings = changed_settings(*request.settings, v.changed);
      ask(std::move(request));
    });
}

void model_turns::refuse(const std::string& why) {
  on_answer({tl::unexpected(
    model_failure{failure_class::cancelled, "a hook ended the run: " + to_utf8(why), {}, 0})});
}

void model_turns::ask(model_request request, std::uint32_t tries) {
  auto mine = ++core_.effect;
  asking_ = true;
  asked_ = core_.now();
  request.draw = core_.run.draw;
  auto client = core_.context->model->get();
  if (!client) {
    ask_later(std::move(request), tries, "no model client is running");
    return;
  }
  open_ask_ = request;
  auto viewer = core_.log.watched() ? caf::actor{core_.self} : caf::actor{};
  core_.self
    ->request(client, caf::infinite,
              model_ask{std::move(request), std::move(viewer), core_.job(), core_.payer})
    .then(
      [this, mine](model_answer& x) {
        if (mine == core_.effect)
          on_answer(std::move(x));
      },
      [this, mine, tries](const caf::error& e) {
        if (mine == core_.effect)
          ask_later(std::move(open_ask_), tries, glue::from_caf(e).detail);
      });
}

/// The client has crashed or is being restarted.
void model_turns::ask_later(model_request request, std::uint32_t tries, const std::string& why) {
  if (tries >= ask_again_limit) {
    on_answer({tl::unexpected(
      model_failure{failure_class::connect, "the model client is gone: " + why, {}, 0})});
    return;
  }
  ask_again(core_.self, *core_.context->clock,
            [this, mine = ++core_.effect, request = std::move(request), tries] {
              if (mine == core_.effect)
                ask(request, tries + 1);
            });
}

void model_turns::on_pieces(const std::vector<model_delta>& pieces) {
  if (!asking_)
    return;  // of a call that was abandoned
  for (auto& piece : pieces) {
    if (piece.what == model_delta::kind::text)
      core_.log.show("reply", json{{"text", piece.text}});
    else if (piece.what == model_delta::kind::reasoning)
      core_.log.show("reasoning", json{{"text", piece.text}});
    else if (piece.what == model_delta::kind::restart)
      core_.log.show("reply_again", json::object());
  }
}

void model_turns::on_answer(model_answer x) {
  asking_ = false;
  open_ask_ = {};  // its view of the transcript would make the next append copy it
  core_.totals.model_wait += std::chrono::duration_cast<micros>(core_.now() - asked_);
  core_.tell_hooks(hook_point::after_model, [&] {
    return x.outcome ? to_json(*x.outcome) : json{{"error", to_utf8(x.outcome.error().detail)}};
  });
  if (!x.outcome) {
    core_.apply(model_failed{std::move(x.outcome.error())});
    return;
  }
  core_.totals.answered_by(x.outcome->model);
  core_.apply(model_replied{std::move(*x.outcome)});
}

void model_turns::abandon() {
  held_.reset();
  if (std::exchange(asking_, false))
    glue::post(core_.context->model->get(), model_cancel{core_.run.run});
}

}  // namespace troupe
