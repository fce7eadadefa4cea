#include "actors/sandbox.hpp"

#include "actors/caf_glue.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <optional>
#include <vector>

namespace troupe {
namespace {

class sandbox_state {
public:
  sandbox_state(caf::event_based_actor* self, std::shared_ptr<sandbox> box, std::uint64_t ticket,
                const caf::actor& owner, caf::actor pool, bool live_output)
    : self_{self}, box_{std::move(box)}, ticket_{ticket}, pool_{std::move(pool)},
      owner_{caf::actor_cast<caf::weak_actor_ptr>(owner)} {
    listen(live_output);
    glue::watch(self_, owner, [](const caf::error&) { return owner_down{}; });
  }

  ~sandbox_state() {
    // Ended by an exception or a kill: the backend still has to end what runs in there.
    if (!closing_)
      box_->close([pool = pool_, ticket = ticket_](close_report r) {
        glue::post(pool, sandbox_gone{ticket, std::move(r)});
      });
  }

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    return {
      [this](snippet_run& x) { return on_run(std::move(x.code)); },
      [this](snippet_ended& x) { on_ended(std::move(x.outcome)); },
      [this](const snippet_interrupt&) {
        if (running_)
          box_->interrupt();
      },
      [this](tool_answer& x) { box_->answer(x.id, std::move(x.value)); },
      [this](const sandbox_close&) { return on_close(); },
      [this](const owner_down&) { close(); },
      [this](const stop&) { close(); },
      [this](const sandbox_closed& x) { on_closed(x.report); },
    };
  }

  static inline const char* name = "sandbox";

private:
  void listen(bool live_output) {
    auto self = caf::actor_cast<caf::weak_actor_ptr>(caf::actor{self_});
    auto to_owner = [owner = owner_](auto message) {
      if (auto strong = owner.lock())
        caf::anon_send(caf::actor_cast<caf::actor>(strong), std::move(message));
    };
    sandbox::output_fn output;
    if (live_output)
      output = [to_owner](std::string_view bytes) { to_owner(output_seen{std::string{bytes}}); };
    box_->hear_connections([to_owner](const egress_record& r) { to_owner(connection_seen{r}); });
    box_->listen(std::move(output), [to_owner, self](code_call call) {
      if (auto me = self.lock())
        to_owner(tool_wanted{std::move(call), caf::actor_cast<caf::actor>(me)});
    });
  }

  caf::result<snippet_answer> on_run(snippet code) {
    auto promise = self_->make_response_promise<snippet_answer>();
    if (running_ || closing_) {
      promise.deliver(snippet_answer{killed(running_ ? "a snippet is running" : "it is closing")});
      return promise;
    }
    auto accepted = box_->run(std::move(code), [to = glue::weak_handle{self_}](snippet_outcome o) {
      to.post(snippet_ended{std::move(o)});
    });
    if (accepted) {
      running_ = promise;
      return promise;
    }
    promise.deliver(snippet_answer{killed(accepted.error().detail)});
    close();  // it died while it was idle: the place is given back
    return promise;
  }

  static snippet_outcome killed(std::string why) {
    snippet_outcome o;
    o.end = snippet_end::killed;
    o.reason = "the sandbox cannot run it: " + std::move(why);
    return o;
  }

  void on_ended(snippet_outcome o) {
    auto dead = !lives_on(o);
    if (running_)
      std::exchange(running_, std::nullopt)->deliver(snippet_answer{std::move(o)});
    if (dead)
      close();
  }

  caf::result<sandbox_closed> on_close() {
    auto promise = self_->make_response_promise<sandbox_closed>();
    close_asked_.push_back(promise);
    close();
    return promise;
  }

  void close() {
    if (std::exchange(closing_, true))
      return;
    // The actor must live until the report is in: the callback holds a strong handle.
    box_->close(
      [me = caf::actor{self_}](close_report r) { glue::post(me, sandbox_closed{std::move(r)}); });
  }

  void on_closed(const close_report& report) {
    glue::post(pool_, sandbox_gone{ticket_, report});
    for (auto& p : close_asked_)
      p.deliver(sandbox_closed{report});
    close_asked_.clear();
    if (running_)
      std::exchange(running_, std::nullopt)->deliver(snippet_answer{killed("it was closed")});
    self_->quit();
  }

  caf::event_based_actor* self_;
  std::shared_ptr<sandbox> box_;
  std::uint64_t ticket_;
  caf::actor pool_;
  caf::weak_actor_ptr owner_;
  std::optional<caf::typed_response_promise<snippet_answer>> running_;
  std::vector<caf::typed_response_promise<sandbox_closed>> close_asked_;
  bool closing_ = false;
};

}  // namespace

caf::actor spawn_sandbox(caf::actor_system& sys, std::shared_ptr<sandbox> box, std::uint64_t ticket,
                         caf::actor owner, caf::actor pool, bool live_output) {
  return sys.spawn<caf::stateful_actor<sandbox_state>>(std::move(box), ticket, std::move(owner),
                                                       std::move(pool), live_output);
}

}  // namespace troupe
