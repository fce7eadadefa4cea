#include "actors/run_log.hpp"

#include "actors/ask_again.hpp"
#include "actors/messages.hpp"
#include "actors/run_core.hpp"

namespace troupe {

bool run_log::all_watched() const {
  return core_.context->interest && core_.context->interest->events;
}

bool run_log::watched() const {
  return core_.run.viewer || all_watched();
}

bool run_log::wanted() const {
  return core_.context->journal || watched();
}

void run_log::take(journal_entry& entry, std::string kind, const json& payload) {
  show(kind, payload);
  if (core_.context->journal)
    entry.events.push_back(
      {core_.run.run, ++seq_, wall_micros(), std::move(kind), dump_json(payload)});
}

void run_log::show(const std::string& kind, const json& payload) {
  if (!watched())
    return;
  auto& run = core_.run;
  auto& context = *core_.context;
  run_event what{run.run, run.sample, kind, payload, ++shown_, context.agent->options.name};
  if (run.manager) {
    what.depth = run.manager->depth;
    what.manager = run.manager->run;
  }
  if (run.viewer && !run.viewer(what))
    run.viewer = nullptr;
  if (context.hub && all_watched())
    glue::post(context.hub->get(), std::move(what));
}

/// An entry may be sent again after a writer's crash: (run, seq) is written once.
void run_log::append(const std::shared_ptr<const journal_entry>& entry,
                     const std::shared_ptr<std::function<void()>>& then, std::uint32_t tries) {
  core_.self->request(core_.context->journal->get(), caf::infinite, journal_append{entry})
    .then([then](const journal_durable&) { (*then)(); },
          [this, entry, then, tries](const caf::error& e) {
            auto why = glue::from_caf(e);
            if (why.detail.starts_with("the actor asked") && tries < ask_again_limit)
              ask_again(core_.self, *core_.context->clock,
                        [this, entry, then, tries] { append(entry, then, tries + 1); });
            else
              fail_once(why);
          });
}

void run_log::fail_once(const error& why) {
  if (!failure_.empty())
    return;
  failure_ = why.detail;
  core_.on_journal_failure(why);
}

}  // namespace troupe
