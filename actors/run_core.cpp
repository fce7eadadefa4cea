#include "actors/run_core.hpp"

#include "runtime/core/text.hpp"

namespace troupe {

void run_totals::answered_by(const std::string& who) {
  if (model.empty() || who.empty()) {
    model += who;
    return;
  }
  auto all = ", " + model + ",";
  if (all.find(", " + who + ",") == std::string::npos)
    model += ", " + who;
}

run_core::run_core(caf::event_based_actor* actor, std::shared_ptr<const agent_context> shared,
                   agent_run own)
  : self{actor}, context{std::move(shared)}, run{std::move(own)},
    machine{context->agent, context->encode, context->start, run.run}, log{*this} {
  if (context->hooks && !context->hooks->empty())
    hooks = std::make_unique<hook_gate>(
      self, context->hooks,
      [this](const run_hook& hook, const hook_event& e, std::string_view did,
             const std::string& why) { note_hook(hook, e, did, why); });
}

hook_event run_core::at_hook(hook_point at, json what) const {
  if (!what.contains("step"))
    what["step"] = machine.step();
  return {at, run.run, context->agent->options.name, std::move(what)};
}

void run_core::note_hook(const run_hook& hook, const hook_event& e, std::string_view did,
                         const std::string& why) {
  log.keep("hook", [&] {
    json out{{"hook", hook.name}, {"at", to_string(e.at)}, {"did", did}, {"why", to_utf8(why)}};
    if (auto call = e.what.find("call"); call != e.what.end())
      out["call"] = *call;
    return out;
  });
}

}  // namespace troupe
