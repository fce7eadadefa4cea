// What hooks may do to a run, and what they may not.
#include "tests/support/run_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using verdict = hook_verdict;

std::string code(const std::string& text) {
  return "<code>\n" + text + "\n</code>";
}

std::optional<snippet_outcome> answer_final(const snippet& s) {
  if (s.code.find("final_answer") != std::string::npos)
    return test::answered(42, "42");
  return test::printed("ran " + s.code);
}

struct hooked_run : test::run_fixture {
  hooked_run(std::vector<run_hook> hooks, std::vector<std::string> replies,
             agent_options options = {}, test::snippet_script script = answer_final)
    : run_fixture{std::make_shared<test::scripted_endpoint>(std::move(replies)), std::move(script),
                  std::move(options)} {
    REQUIRE(validate(hooks));
    std::tie(owner, ends) = collector<run_finished>();
    auto c = std::make_shared<agent_context>(*context);
    c->hooks = std::make_shared<const std::vector<run_hook>>(std::move(hooks));
    context = c;
    agent = spawn_agent(sys, context, {run_id{7}, "s1", {}, owner});
    glue::post(agent, run_start{{"Do it.", {}}});
    deliver();
  }

  /// What the journal says of hooks: "name did why, ...".
  [[nodiscard]] std::string noted() const {
    std::string out;
    for (auto& e : journal->events)
      if (e.kind == "hook") {
        auto p = json::parse(e.payload);
        out += string_or(p, "hook") + " " + string_or(p, "did") + " " + string_or(p, "why") + "\n";
      }
    return out;
  }

  [[nodiscard]] std::string observations() const {
    std::string out;
    for (auto& e : journal->events)
      if (e.kind == "observation")
        out += string_or(json::parse(e.payload), "text") + "\n";
    return out;
  }

  caf::actor owner;
  std::shared_ptr<std::vector<run_finished>> ends;
  caf::actor agent;
};

agent_options by_text() {
  agent_options o;
  o.kind = agent_kind::tool_calling;
  o.calls = call_protocol::text;
  return o;
}

std::string convert(int value) {
  return dump_json({{"name", "convert_units"},
                    {"arguments", {{"value", value}, {"from_unit", "km"}, {"to_unit", "m"}}}});
}

const std::string done = R"({"name": "final_answer", "arguments": {"answer": "done"}})";

}  // namespace

TEST_CASE("hooks hear everything in its order", "[hooks]") {
  std::string heard;
  std::vector<hook_point> all{hook_point::before_step, hook_point::before_model,
                              hook_point::after_model, hook_point::before_code,
                              hook_point::after_code,  hook_point::after_step,
                              hook_point::run_ended};
  auto listen = make_hook("listener", all, [&](const hook_event& e) {
    heard += std::string{to_string(e.at)} + std::to_string(e.what.value("step", 0)) + " ";
    return verdict::go_on();
  });
  hooked_run run{{listen}, {code("x = 1"), code("final_answer(x)")}};
  CHECK(run.ends->front().end.end == run_end::success);
  CHECK(heard
        == "before_step1 before_model1 after_model1 before_code1 after_code1 after_step1 "
           "before_step2 before_model2 after_model2 before_code2 after_code2 run_ended2 ");
  CHECK(run.noted().empty());
}

TEST_CASE("hooks hear of plans and forced answers as of steps, each at its points alone",
          "[hooks]") {
  std::string models, steps;
  auto of_models = make_hook("models", {hook_point::before_model}, [&](const hook_event& e) {
    models += std::to_string(e.what.value("step", -1)) + " ";
    return verdict::go_on();
  });
  auto of_steps = make_hook("steps", {hook_point::after_step}, [&](const hook_event& e) {
    steps += std::to_string(e.what.value("step", -1)) + " ";
    return verdict::go_on();
  });
  agent_options o;
  o.planning_interval = 5;
  o.max_steps = 1;
  hooked_run run{{of_models, of_steps}, {"1. think", code("x = 1"), "one"}, o};
  CHECK(run.ends->front().end.end == run_end::max_steps);
  CHECK(models == "0 1 2 ");
  CHECK(steps == "1 ");
}

TEST_CASE("a hook changes the code that is run", "[hooks]") {
  auto change = make_hook("rewriter", {hook_point::before_code}, [](const hook_event& e) {
    return verdict::change({{"code", "# seen\n" + e.what["code"].get<std::string>()}});
  });
  hooked_run run{{change}, {code("final_answer(1)")}};
  CHECK(run.backend->log->ran == std::vector<std::string>{"# seen\nfinal_answer(1)"});
  CHECK(run.noted().starts_with("rewriter changed"));
}

TEST_CASE("code that a hook vetoes is not run, and the model reads why", "[hooks]") {
  auto veto = make_hook("guard", {hook_point::before_code}, [](const hook_event& e) {
    auto bad = e.what["code"].get<std::string>().find("rm") != std::string::npos;
    return bad ? verdict::veto("no deleting here") : verdict::go_on();
  });
  hooked_run run{{veto}, {code("rm()"), code("final_answer(1)")}};
  CHECK(run.ends->front().end.end == run_end::success);
  CHECK(run.backend->log->ran == std::vector<std::string>{"final_answer(1)"});
  CHECK(run.observations().find("the code was not run: no deleting here") != std::string::npos);
  CHECK(run.noted() == "guard vetoed no deleting here\n");
}

TEST_CASE("a hook changes a call's arguments, or vetoes it", "[hooks]") {
  auto change = make_hook("halver", {hook_point::before_tool}, [](const hook_event& e) {
    auto arguments = e.what["arguments"];
    if (e.what["tool"] != "convert_units")
      return verdict::go_on();
    if (arguments["value"] == 9)
      return verdict::veto("9 is not converted");
    arguments["value"] = arguments["value"].get<int>() / 2;
    return verdict::change({{"arguments", arguments}});
  });
  hooked_run run{{change}, {convert(4), convert(9), done}, by_text()};
  CHECK(run.ends->front().end.end == run_end::success);
  CHECK(run.observations().find("2000") != std::string::npos);
  CHECK(run.observations().find("9 is not converted") != std::string::npos);
}

TEST_CASE("a hook changes how a model is asked", "[hooks]") {
  std::optional<double> asked;
  auto change = make_hook("cooler", {hook_point::before_model}, [](const hook_event&) {
    return verdict::change({{"temperature", 0.25}});
  });
  auto model = std::make_shared<test::scripted_endpoint>([&](const model_request& r) {
    asked = r.settings->temperature;
    return done;
  });
  test::run_fixture fx{model, answer_final, by_text()};
  auto c = std::make_shared<agent_context>(*fx.context);
  c->hooks = std::make_shared<const std::vector<run_hook>>(std::vector<run_hook>{change});
  auto [owner, ends] = fx.collector<run_finished>();
  glue::post(spawn_agent(fx.sys, c, {run_id{7}, "s1", {}, owner}), run_start{{"Do it.", {}}});
  fx.deliver();
  CHECK(asked == 0.25);
}

TEST_CASE("a vetoed step ends the run with the reason", "[hooks]") {
  auto veto = make_hook("limiter", {hook_point::before_step}, [](const hook_event& e) {
    return e.what["step"] == 2 ? verdict::veto("one step is enough") : verdict::go_on();
  });
  hooked_run run{{veto}, {code("x = 1"), code("final_answer(x)")}};
  auto& end = run.ends->front().end;
  CHECK(end.end == run_end::cancelled);
  CHECK(end.error.find("one step is enough") != std::string::npos);
}

TEST_CASE("a hook that fails is noted, and the run goes on", "[hooks]") {
  auto throws =
    make_hook("thrower", {hook_point::before_code, hook_point::after_code},
              [](const hook_event&) -> hook_verdict { throw std::runtime_error{"broken hook"}; });
  run_hook forgets{"forgetter", {hook_point::before_code}, [](auto&, auto) {}};
  auto wrong = make_hook("changer", {hook_point::before_code}, [](const hook_event&) {
    return verdict::change({{"step", 7}});
  });
  hooked_run run{{throws, forgets, wrong}, {code("final_answer(1)")}};
  CHECK(run.ends->front().end.end == run_end::success);
  CHECK(run.noted()
        == "thrower failed broken hook\nforgetter failed it gave no verdict\nchanger failed 'step' "
           "cannot be changed at before_code\nthrower failed broken hook\n");
}

TEST_CASE("where a hook must agree, its failure is a veto", "[hooks]") {
  auto throws =
    make_hook("guard", {hook_point::before_code},
              [](const hook_event&) -> hook_verdict { throw std::runtime_error{"broken hook"}; });
  throws.must = true;
  hooked_run run{{throws}, {code("final_answer(1)"), code("final_answer(2)")}};
  CHECK(run.backend->log->ran.empty());
  CHECK(run.observations().find("the hook 'guard' failed: broken hook") != std::string::npos);
}

TEST_CASE("a hook may take its time; the code has all of its own", "[hooks]") {
  std::vector<hook_reply> waiting;
  time_point soft;
  run_hook slow{"slow", {hook_point::before_code}, [&](const hook_event&, hook_reply r) {
                  waiting.push_back(std::move(r));
                }};
  hooked_run run{{slow}, {code("final_answer(1)")}, {}, [&](const snippet& s) {
                   soft = s.soft_deadline;
                   return answer_final(s);
                 }};
  REQUIRE(waiting.size() == 1);
  CHECK(run.backend->log->ran.empty());
  run.advance(60s);
  auto now = run.clock.now();
  waiting[0](verdict::go_on());
  waiting[0](verdict::veto("twice"));
  run.deliver();
  CHECK(run.ends->front().end.end == run_end::success);
  CHECK(soft == now + 30s);
}

TEST_CASE("a run that is cancelled waits for no hook", "[hooks]") {
  std::vector<hook_reply> waiting;
  run_hook slow{"slow", {hook_point::before_step}, [&](const hook_event&, hook_reply r) {
                  waiting.push_back(std::move(r));
                }};
  hooked_run run{{slow}, {code("final_answer(1)")}};
  glue::post(run.agent, run_cancel{"enough"});
  run.deliver();
  REQUIRE(run.ends->size() == 1);
  CHECK(run.ends->front().end.end == run_end::cancelled);
  run.agent = nullptr;
  waiting[0](verdict::go_on());
  run.deliver();
  CHECK(run.model->requests.empty());
}

TEST_CASE("approval is a hook: denied, or asked for", "[hooks]") {
  approval_settings deny{approval::deny, {"convert_units"}};
  hooked_run denied{{approval_hook(deny, {})}, {convert(4), done}, by_text()};
  CHECK(denied.ends->front().end.end == run_end::success);
  CHECK(denied.observations().find("may not be done") != std::string::npos);

  std::string asked;
  auto ask = [&](const hook_event& e, const std::function<void(bool, std::string)>& answer) {
    asked += e.what.value("tool", "code") + " ";
    answer(e.what.value("tool", "") == "final_answer", "too many metres");
  };
  hooked_run refused{{approval_hook({approval::ask, {"*"}}, ask)}, {convert(4), done}, by_text()};
  CHECK(asked == "convert_units final_answer ");
  CHECK(refused.observations().find("the user did not allow it: too many metres")
        != std::string::npos);
}

TEST_CASE("hooks without a name, a function or points are refused", "[hooks]") {
  auto fine =
    make_hook("a", {hook_point::run_ended}, [](const hook_event&) { return verdict::go_on(); });
  CHECK(validate({fine}));
  CHECK_FALSE(validate({fine, fine}));
  CHECK_FALSE(validate({run_hook{"b", {}, fine.call}}));
  CHECK_FALSE(validate({run_hook{"", {hook_point::run_ended}, fine.call}}));
  CHECK_FALSE(validate({run_hook{"b", {hook_point::run_ended}, nullptr}}));
}
