#pragma once
// Everything an agent actor talks to, scripted, on the deterministic actor system.

#include "actors/address.hpp"
#include "actors/agent.hpp"
#include "actors/event_hub.hpp"
#include "actors/executor_pool.hpp"
#include "actors/model_client.hpp"
#include "actors/supervisor.hpp"
#include "actors/tool_host.hpp"
#include "runtime/agent/react_loop.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/scripted_endpoint.hpp"
#include "tests/support/scripted_executor.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::test {

/// A journal in memory that answers at once, or holds its answers, or fails.
struct memory_journal {
  std::vector<journal_event> events;
  std::vector<run_result> results;
  bool hold = false;
  std::string failure;
  std::vector<caf::typed_response_promise<journal_durable>> held;

  std::string kinds() const {
    std::string all;
    for (auto& e : events)
      all += (all.empty() ? "" : " ") + e.kind;
    return all;
  }
};

struct run_fixture : actor_fixture {
  run_fixture(std::shared_ptr<scripted_endpoint> model_, snippet_script script,
              agent_options options_ = {})
    : model{std::move(model_)}, backend{std::make_shared<scripted_executor>(std::move(script))} {
    options_.prompts = shipped_prompts(options_.kind);
    if (options_.max_steps == 20)
      options_.max_steps = 5;
    REQUIRE(tools->add(final_answer_tool()));
    REQUIRE(tools->add(convert_units_tool()));
    options_.tools = tools->specs();
    put(model_at,
        spawn_model_client(sys, model, {}, std::make_shared<model_client_stats>(), clock));
    put(pool_at, spawn_executor_pool(sys, backend, {}, pool_stats));
    put(hub_at, spawn_event_hub(sys, interest));
    put(host_at, spawn_tool_host(sys));
    put(journal_at, spawn_memory_journal());
    auto c = std::make_shared<agent_context>();
    c->agent = prepare(std::move(options_));
    c->encode = model->encoder();
    c->start = react_loop::start_of(*c->agent, c->encode);
    c->tools = tools;
    c->model = model_at;
    c->executor = pool_at;
    c->journal = journal_at;
    c->hub = hub_at;
    c->interest = interest;
    c->tool_hosts = {host_at};
    c->clock = &clock;
    c->agents = agents_at;
    c->numbers = std::make_shared<run_numbers>();
    supervisor_options agents;
    agents.name = "agents";
    agents.how = strategy::simple_one_for_one;
    put(agents_at, spawn_supervisor(sys, std::move(agents), clock));
    context = c;
    deliver();
  }

  static std::shared_ptr<const agent_definition> prepare(agent_options options) {
    auto made = define_agent(std::move(options));
    REQUIRE(made);
    return *made;
  }

  void put(const std::shared_ptr<address>& where, caf::actor a) { where->set(keep(std::move(a))); }

  caf::actor spawn_memory_journal() {
    return sys.spawn([j = journal](caf::event_based_actor* self) -> caf::behavior {
      return {[=](const journal_append& x) -> caf::result<journal_durable> {
                auto promise = self->make_response_promise<journal_durable>();
                if (!j->failure.empty()) {
                  promise.deliver(glue::to_caf({errc::unavailable, j->failure}));
                  return promise;
                }
                j->events.insert(j->events.end(), x.entry->events.begin(), x.entry->events.end());
                if (x.entry->result)
                  j->results.push_back(*x.entry->result);
                if (j->hold)
                  j->held.push_back(promise);
                else
                  promise.deliver(journal_durable{});
                return promise;
              },
              [j](const pause_over&) {
                for (auto& p : std::exchange(j->held, {}))
                  p.deliver(journal_durable{});
              }};
    });
  }

  /// Answers the appends that were held. A promise is delivered in its actor, nowhere else.
  void release_journal() {
    glue::post(journal_at->get(), pause_over{});
    deliver();
  }

  std::shared_ptr<scripted_endpoint> model;
  std::shared_ptr<scripted_executor> backend;
  std::shared_ptr<tool_set> tools = std::make_shared<tool_set>();
  std::shared_ptr<memory_journal> journal = std::make_shared<memory_journal>();
  std::shared_ptr<hub_interest> interest = std::make_shared<hub_interest>();
  std::shared_ptr<executor_pool_stats> pool_stats = std::make_shared<executor_pool_stats>();
  std::shared_ptr<address> model_at = std::make_shared<address>();
  std::shared_ptr<address> pool_at = std::make_shared<address>();
  std::shared_ptr<address> hub_at = std::make_shared<address>();
  std::shared_ptr<address> host_at = std::make_shared<address>();
  std::shared_ptr<address> journal_at = std::make_shared<address>();
  std::shared_ptr<address> agents_at = std::make_shared<address>();
  std::shared_ptr<const agent_context> context;
};

}  // namespace troupe::test
