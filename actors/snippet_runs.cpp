#include "actors/snippet_runs.hpp"

#include "actors/ask_again.hpp"
#include "actors/import_hint.hpp"
#include "runtime/core/text.hpp"

#include <utility>

namespace troupe {
namespace {

snippet_outcome not_run(const std::string& why) {
  snippet_outcome o;
  o.end = snippet_end::raised;
  auto text = "the code was not run: " + to_utf8(why);
  o.error = snippet_error{"PermissionError", text, 0, "PermissionError: " + text + "\n"};
  return o;
}

}  // namespace

void delay(snippet& code, steady_clock::duration waited) {
  code.soft_deadline = after(code.soft_deadline, waited);
  code.hard_deadline = after(code.hard_deadline, waited);
}

void snippet_runs::begin(snippet code) {
  if (!core_.hooked(hook_point::before_code)) {
    run_own(std::move(code));
    return;
  }
  json what{{"code", code.code}};
  core_.by_leave(hook_point::before_code, std::move(what),
                 [this, mine = ++core_.effect, asked = core_.now(),
                  code = std::move(code)](const hook_verdict& v) mutable {
                   if (mine != core_.effect)
                     return;
                   if (v.vetoed) {
                     core_.apply(snippet_done{not_run(v.reason)});
                     return;
                   }
                   if (!v.changed.is_null())
                     code.code = v.changed["code"].get<std::string>();
                   delay(code, core_.now() - asked);
                   run_own(std::move(code));
                 });
}

void snippet_runs::run_own(snippet code) {
  running_ = true;
  if (lent())
    run_lent(std::move(code));
  else
    run(std::move(code), [this](result<snippet_outcome> o) { on_own(std::move(o)); });
}

/// In the manager's sandbox, which tells nobody else how it ended.
void snippet_runs::run_lent(snippet code) {
  auto mine = ++core_.effect;
  core_.self
    ->request(core_.run.owner, caf::infinite,
              lent_run{core_.run.run, caf::actor{core_.self}, std::move(code)})
    .then(
      [this, mine](snippet_answer& x) {
        if (mine == core_.effect)
          on_own(std::move(x.outcome));
      },
      [this, mine](const caf::error& e) {
        if (mine == core_.effect)
          on_own(fail(glue::from_caf(e)));
      });
}

void snippet_runs::on_own(result<snippet_outcome> o) {
  running_ = false;
  core_.on_code_end();
  if (!o) {
    core_.apply(sandbox_failed{o.error().detail});
    return;
  }
  if (o->error)
    hint_at_imports(*o->error);
  agent_event done{snippet_done{*std::move(o)}};
  core_.tell_hooks(hook_point::after_code, [&] { return to_json(done); });
  core_.apply(std::move(done));
}

void snippet_runs::run(snippet code, done_fn done) {
  ++core_.effect;
  if (box_)
    run_in_box(std::move(code), std::move(done));
  else
    open(std::move(code), std::move(done), 0);
}

void snippet_runs::open(snippet code, done_fn done, std::uint32_t tries) {
  auto& shared = *core_.context;
  if (!shared.executor) {
    done(fail(errc::unavailable, "this runtime has no executor"));
    return;
  }
  auto pool = shared.executor->get();
  if (!pool) {
    open_later(std::move(code), std::move(done), tries,
               {errc::unavailable, "no executor pool is running"});
    return;
  }
  auto spec = shared.sandbox;
  spec.files = core_.run.files;
  // Who works in a lent one opens none.
  auto levels = shared.levels - (shared.agent->options.share_sandbox ? 1 : 0);
  core_.self
    ->request(pool, caf::infinite,
              sandbox_open{core_.run.run, std::move(spec), caf::actor{core_.self}, levels,
                           core_.run.manager != nullptr})
    .then(
      [this, mine = core_.effect, code, done, asked = core_.now()](sandbox_ready& x) mutable {
        if (mine != core_.effect) {  // cancelled meanwhile: nobody will use it
          glue::post(x.sandbox, stop{});
          return;
        }
        box_ = std::move(x.sandbox);
        ++core_.totals.sandboxes;
        delay(code, core_.now() - asked);
        run_in_box(std::move(code), std::move(done));
      },
      [this, mine = core_.effect, code, done, tries](const caf::error& e) {
        if (mine == core_.effect)
          open_later(code, done, tries, glue::from_caf(e));
      });
}

void snippet_runs::open_later(snippet code, done_fn done, std::uint32_t tries, const error& why) {
  auto restarting =
    why.code == errc::unavailable && tries < ask_again_limit
    && (!core_.context->executor->get() || why.detail.starts_with("the actor asked"));
  if (!restarting) {
    done(fail(why));
    return;
  }
  ask_again(core_.self, *core_.context->clock,
            [this, mine = core_.effect, code = std::move(code), done = std::move(done), tries] {
              if (mine == core_.effect)
                open(code, done, tries + 1);
            });
}

void snippet_runs::run_in_box(snippet code, done_fn done) {
  auto ended = [this, mine = core_.effect, done = std::move(done)](snippet_outcome o) {
    if (mine != core_.effect)
      return;
    if (!lives_on(o))
      box_ = nullptr;  // it closes itself
    done(std::move(o));
  };
  core_.self->request(box_, caf::infinite, snippet_run{std::move(code)})
    .then([ended](snippet_answer& x) { ended(std::move(x.outcome)); },
          [ended](const caf::error& e) {
            snippet_outcome lost;
            lost.end = snippet_end::killed;
            lost.reason = "the sandbox is gone: " + glue::from_caf(e).detail;
            ended(std::move(lost));
          });
}

void snippet_runs::interrupt() {
  glue::post(box_, snippet_interrupt{});
}

void snippet_runs::close() {
  if (running_ && lent())
    glue::post(core_.run.owner, lent_end{core_.run.run});
  if (auto box = std::exchange(box_, nullptr))
    glue::post(box, stop{});
}

void snippet_runs::close_then(const std::function<void()>& then) {
  if (!box_ || !core_.context->sandbox.network) {
    close();
    then();
    return;
  }
  core_.self->request(std::exchange(box_, nullptr), caf::infinite, sandbox_close{})
    .then([then](const sandbox_closed&) { then(); }, [then](const caf::error&) { then(); });
}

}  // namespace troupe
