#include "config/option_value.hpp"
#include "config/options.hpp"
#include "tests/config/fake_environment.hpp"

#include <catch2/catch_test_macros.hpp>

#include <set>

using namespace troupe;
using namespace std::chrono_literals;
using test::environment;

namespace {

option_input flag(std::string name, std::vector<std::string> words) {
  auto where = flag_of(*find_option(name));
  return {std::move(name), std::move(words), where};
}

const explained_option& explained(const settings& s, std::string_view name) {
  for (const auto& x : s.explained)
    if (x.name == name)
      return x;
  throw std::runtime_error{"not explained: " + std::string{name}};
}

std::string refusal(command c, const std::vector<option_input>& flags) {
  auto r = resolve(c, {}, environment({}), flags);
  return r ? "accepted" : r.error().detail;
}

}  // namespace

TEST_CASE("with nothing given the table's defaults are the structs' own", "[options]") {
  auto got = resolve(command::eval, {}, environment({}), {});
  REQUIRE(got);
  settings plain;
  CHECK(got->model.model.empty());
  CHECK(!got->model.temperature);
  CHECK(!got->model.max_tokens);
  CHECK(!got->model.seed);
  CHECK(got->model.request_timeout == plain.model.request_timeout);
  CHECK(got->model.attempts == plain.model.attempts);
  CHECK(got->model.max_connections == plain.model.max_connections);
  CHECK(got->agent.kind == plain.agent.kind);
  CHECK(got->agent.max_steps == plain.agent.max_steps);
  CHECK(got->agent.run_time == plain.agent.run_time);
  CHECK(got->agent.step_time == plain.agent.step_time);
  CHECK(got->agent.step_grace == plain.agent.step_grace);
  CHECK(got->agent.token_budget == plain.agent.token_budget);
  CHECK(got->sandbox.executor == plain.sandbox.executor);
  CHECK(got->sandbox.profile == plain.sandbox.profile);
  CHECK(got->sandbox.memory_bytes == plain.sandbox.memory_bytes);
  CHECK(got->sandbox.processes == plain.sandbox.processes);
  CHECK(got->batch.max_concurrency == 64);
  CHECK(got->batch.epochs == plain.batch.epochs);
  CHECK(got->batch.tolerance == plain.batch.tolerance);
  CHECK(got->output.log_level == plain.output.log_level);
}

TEST_CASE("every row has a unique name, a default that fits, and an effect", "[options]") {
  std::set<std::string_view> names;
  for (const auto& row : option_table()) {
    INFO(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(row.commands != 0);
    CHECK(row.assign != nullptr);
    CHECK(!row.help.empty());
    CHECK(row.help.back() != '.');
    if (!row.fallback.empty())
      CHECK(parse_option(row, {std::string{row.fallback}}));
  }
}

TEST_CASE("a flag beats the environment, which beats the file, which beats the default",
          "[options]") {
  std::vector<option_input> file{{"max_concurrency", {"8"}, "troupe.yaml, line 1"},
                                 {"epochs", {"2"}, "troupe.yaml, line 2"},
                                 {"max_steps", {"7"}, "troupe.yaml, line 3"}};
  auto env = environment({{"TROUPE_MAX_CONCURRENCY", "16"}, {"TROUPE_EPOCHS", "3"}});
  auto got = resolve(command::eval, file, env, {flag("max_concurrency", {"32"})});
  REQUIRE(got);
  CHECK(got->batch.max_concurrency == 32);
  CHECK(got->batch.epochs == 3);
  CHECK(got->agent.max_steps == 7);
  CHECK(explained(*got, "max_concurrency").where == "--max-concurrency");
  CHECK(explained(*got, "max_concurrency").origin == value_origin::flag);
  CHECK(explained(*got, "epochs").where == "TROUPE_EPOCHS");
  CHECK(explained(*got, "max_steps").where == "troupe.yaml, line 3");
  CHECK(explained(*got, "attempts").where == "default");
  CHECK(to_json(*got)["epochs"]
        == json{{"value", "3"}, {"from", "environment"}, {"where", "TROUPE_EPOCHS"}});
  CHECK(explain(*got).find("(troupe.yaml, line 3)") != std::string::npos);
}

TEST_CASE("a value out of its range names the option, the value and the accepted form",
          "[options]") {
  CHECK(refusal(command::eval, {flag("max_concurrency", {"0"})})
        == "--max-concurrency: '0' is not a whole number from 1 to 1000000");
  CHECK(refusal(command::eval, {flag("epochs", {"two"})})
        == "--epochs: 'two' is not a whole number from 1 to 10000");
  CHECK(refusal(command::eval, {flag("temperature", {"nan"})})
        == "--temperature: 'nan' is not a number from 0 to 2");
  CHECK(
    refusal(command::eval, {flag("scorer", {"exacct"})})
    == "--scorer: 'exacct' is not one of exact, includes, regex, numeric (did you mean 'exact'?)");
  CHECK(refusal(command::eval, {flag("step_time", {"5 parsecs"})})
        == "--step-time: '5 parsecs' is not a time such as 250ms, 90s, 1.5m or 2h from 1ms to 1d");
  CHECK(refusal(command::eval, {flag("out", {})}) == "--out: no value given; it takes a text");
  CHECK(refusal(command::eval, {flag("epochs", {"1", "2"})})
        == "--epochs: 2 values given; it takes one");
}

TEST_CASE("a wrong value in the environment or the file says which one it is", "[options]") {
  auto env = resolve(command::eval, {}, environment({{"TROUPE_EPOCHS", "x"}}), {});
  REQUIRE(!env);
  CHECK(env.error().code == errc::invalid_argument);
  CHECK(env.error().detail == "TROUPE_EPOCHS: 'x' is not a whole number from 1 to 10000");
  auto file = resolve(command::eval, {{"epochs", {"x"}, "c.yaml, line 4"}}, environment({}), {});
  REQUIRE(!file);
  CHECK(file.error().detail == "c.yaml, line 4: epochs: 'x' is not a whole number from 1 to 10000");
}

TEST_CASE("an unknown option suggests the nearest", "[options]") {
  auto got =
    resolve(command::eval, {}, environment({}), {{"max_concurency", {"1"}, "--max-concurency"}});
  REQUIRE(!got);
  CHECK(got.error().detail
        == "--max-concurency: unknown option 'max_concurency' (did you mean 'max_concurrency'?)");
}

TEST_CASE("an option of another command is refused as a flag, and checked but unused in a file",
          "[options]") {
  CHECK(refusal(command::run, {flag("epochs", {"2"})})
        == "--epochs: is not an option of this command");
  CHECK(resolve(command::run, {{"epochs", {"2"}, "f, line 1"}}, environment({}), {}));
  CHECK(!resolve(command::run, {{"epochs", {"no"}, "f, line 1"}}, environment({}), {}));
  CHECK(resolve(command::run, {}, environment({{"TROUPE_EPOCHS", "9"}}), {}));
}

TEST_CASE("lists and maps come from commas or repetition, and a later source replaces them",
          "[options]") {
  auto got = resolve(command::eval, {{"tools", {"a", "b"}, "f"}},
                     environment({{"TROUPE_IMPORTS", "math, numpy.*,"}}),
                     {flag("fields", {"input=question,target=answer"}), flag("tools", {"c"})});
  REQUIRE(got);
  CHECK(got->agent.tools == std::vector<std::string>{"c"});
  CHECK(got->agent.imports == std::vector<std::string>{"math", "numpy.*"});
  CHECK(got->batch.fields
        == std::map<std::string, std::string>{{"input", "question"}, {"target", "answer"}});
  CHECK(refusal(command::eval, {flag("fields", {"imput=question"})}).find("did you mean 'input'?")
        != std::string::npos);
  CHECK(refusal(command::eval, {flag("fields", {"input=a,input=b"})})
        == "--fields: 'input' stands there twice");
  CHECK(refusal(command::eval, {flag("fields", {"input"})})
          .starts_with("--fields: 'input' is not a list"));
}

TEST_CASE("a bare flag is true and an empty variable is not set", "[options]") {
  auto got = resolve(command::eval, {}, environment({{"TROUPE_EPOCHS", ""}}),
                     {flag("skip_bad_lines", {}), flag("json", {"no"})});
  REQUIRE(got);
  CHECK(got->batch.skip_bad_lines);
  CHECK(!got->output.json);
  CHECK(got->batch.epochs == 1);
}

TEST_CASE("images go with one task, prompts and context with both commands", "[options]") {
  auto got = resolve(command::run, {{"prompts", {"p.yaml"}, "f"}}, environment({}),
                     {flag("image", {"a.png", "b.png"}), flag("planning", {"4"}),
                      flag("structured", {}), flag("context_share", {"0.5"})});
  REQUIRE(got);
  CHECK(got->agent.images == std::vector<std::string>{"a.png", "b.png"});
  CHECK(got->agent.prompts == "p.yaml");
  CHECK(got->agent.planning == 4);
  CHECK(got->agent.structured);
  CHECK(got->agent.context_share == 0.5);
  CHECK(got->agent.answer_retries == 3);
  CHECK(refusal(command::eval, {flag("image", {"a.png"})})
        == "--image: is not an option of this command");
  CHECK(refusal(command::eval, {flag("context_share", {"2"})})
        == "--context-share: '2' is not a number from 0.1 to 1");
}

TEST_CASE("times and sizes take the units people write", "[options]") {
  CHECK(parse_duration("90") == 90s);
  CHECK(parse_duration("1.5m") == 90s);
  CHECK(parse_duration("250ms") == 250ms);
  CHECK(parse_duration("2 h") == 2h);
  CHECK(!parse_duration("-1s"));
  CHECK(!parse_duration(""));
  CHECK(!parse_duration("s"));
  CHECK(!parse_duration("1e300d"));
  CHECK(parse_bytes("512MiB") == 536870912);
  CHECK(parse_bytes("1GB") == 1000000000);
  CHECK(parse_bytes("1024") == 1024);
  CHECK(!parse_bytes("1 GiBs"));
}

TEST_CASE("a key written where its variable's name belongs is refused and not repeated",
          "[options]") {
  auto message = refusal(command::run, {flag("api_key_env", {"sk-secret-123"})});
  CHECK(message.find("name of an environment variable") != std::string::npos);
  CHECK(message.find("secret") == std::string::npos);
  CHECK(resolve(command::run, {}, environment({}), {flag("api_key_env", {"MY_KEY"})}));
}

TEST_CASE("a TROUPE_ variable that means nothing is reported with the nearest", "[options]") {
  auto warnings =
    unknown_variables({"TROUPE_EPOCH", "TROUPE_MODEL", "TROUPE_DEPS", "PATH"}, {"TROUPE_DEPS"});
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == "TROUPE_EPOCH is set but means nothing (did you mean 'TROUPE_EPOCHS'?)");
}
