#include "config/options.hpp"

namespace troupe {
namespace {

constexpr auto on_run = static_cast<std::uint8_t>(command::run);
constexpr auto on_eval = static_cast<std::uint8_t>(command::eval);
constexpr std::uint8_t on_both = on_run | on_eval;

constexpr double day = 86'400;
constexpr double u32_max = 4'294'967'295.0;
constexpr double i53_max = 9'007'199'254'740'992.0;  // exact in a double

using text_list = std::vector<std::string>;
using text_map = std::map<std::string, std::string>;

const std::string& text(const option_value& v) {
  return std::get<std::string>(v);
}
std::int64_t whole(const option_value& v) {
  return std::get<std::int64_t>(v);
}
std::uint32_t count(const option_value& v) {
  return static_cast<std::uint32_t>(whole(v));
}
std::uint64_t large(const option_value& v) {
  return static_cast<std::uint64_t>(whole(v));
}
millis span(const option_value& v) {
  return std::get<millis>(v);
}

std::vector<option_spec> model_rows() {
  using t = option_type;
  constexpr std::string_view g = "Model";
  return {
    {"model",
     t::text,
     "",
     0,
     0,
     {},
     on_both,
     g,
     "provider/model, e.g. openai/gpt-4.1, ollama/qwen3, mock/script.json",
     "-m",
     [](settings& s, const option_value& v) { s.model.model = text(v); }},
    {"base_url",
     t::text,
     "",
     0,
     0,
     {},
     on_both,
     g,
     "where the endpoint is, e.g. http://localhost:8000/v1 (default: the provider's)",
     "",
     [](settings& s, const option_value& v) { s.model.base_url = text(v); }},
    {"api_key_env",
     t::text,
     "",
     0,
     0,
     {},
     on_both,
     g,
     "name of the environment variable that holds the key (default: the provider's)",
     "",
     [](settings& s, const option_value& v) { s.model.api_key_env = text(v); }},
    {"temperature",
     t::real,
     "",
     0,
     2,
     {},
     on_both,
     g,
     "sampling temperature",
     "",
     [](settings& s, const option_value& v) { s.model.temperature = std::get<double>(v); }},
    {"max_tokens",
     t::whole,
     "",
     1,
     u32_max,
     {},
     on_both,
     g,
     "longest reply, in tokens",
     "",
     [](settings& s, const option_value& v) { s.model.max_tokens = count(v); }},
    {"seed",
     t::whole,
     "",
     -i53_max,
     i53_max,
     {},
     on_both,
     g,
     "seed for sampling, where the server takes one",
     "",
     [](settings& s, const option_value& v) { s.model.seed = whole(v); }},
    {"timeout",
     t::duration,
     "5m",
     0.001,
     day,
     {},
     on_both,
     g,
     "time for one request, from sent to the whole reply",
     "",
     [](settings& s, const option_value& v) { s.model.request_timeout = span(v); }},
    {"attempts",
     t::whole,
     "6",
     1,
     100,
     {},
     on_both,
     g,
     "requests for one reply, the first included",
     "",
     [](settings& s, const option_value& v) { s.model.attempts = count(v); }},
    {"max_connections",
     t::whole,
     "0",
     0,
     10'000,
     {},
     on_both,
     g,
     "requests in flight (0: as many as max_concurrency)",
     "",
     [](settings& s, const option_value& v) { s.model.max_connections = count(v); }},
  };
}

std::vector<option_spec> agent_rows() {
  using t = option_type;
  constexpr std::string_view g = "Agent";
  return {
    {"agent",
     t::choice,
     "code",
     0,
     0,
     {"code"},
     on_both,
     g,
     "kind of agent",
     "",
     [](settings& s, const option_value& v) { s.agent.kind = text(v); }},
    {"instructions",
     t::text,
     "",
     0,
     0,
     {},
     on_both,
     g,
     "added to the system prompt",
     "",
     [](settings& s, const option_value& v) { s.agent.instructions = text(v); }},
    {"tools",
     t::list,
     "",
     0,
     0,
     {},
     on_both,
     g,
     "tools the agent may call (final_answer is always there)",
     "",
     [](settings& s, const option_value& v) { s.agent.tools = std::get<text_list>(v); }},
    {"imports",
     t::list,
     "",
     0,
     0,
     {},
     on_both,
     g,
     "modules its code may import, e.g. math,numpy.*",
     "",
     [](settings& s, const option_value& v) { s.agent.imports = std::get<text_list>(v); }},
    {"max_steps",
     t::whole,
     "20",
     1,
     10'000,
     {},
     on_both,
     g,
     "model replies before the answer is asked for",
     "",
     [](settings& s, const option_value& v) { s.agent.max_steps = count(v); }},
    {"run_time",
     t::duration,
     "0",
     0,
     30 * day,
     {},
     on_both,
     g,
     "wall time of one run (0: no limit)",
     "",
     [](settings& s, const option_value& v) { s.agent.run_time = span(v); }},
    {"step_time",
     t::duration,
     "30s",
     0.001,
     day,
     {},
     on_both,
     g,
     "wall time of one snippet, then it is interrupted",
     "",
     [](settings& s, const option_value& v) { s.agent.step_time = span(v); }},
    {"step_grace",
     t::duration,
     "5s",
     0.001,
     day,
     {},
     on_both,
     g,
     "from the interrupt until its sandbox is killed",
     "",
     [](settings& s, const option_value& v) { s.agent.step_grace = span(v); }},
    {"token_budget",
     t::whole,
     "0",
     0,
     i53_max,
     {},
     on_both,
     g,
     "input and output tokens of one run (0: no limit)",
     "",
     [](settings& s, const option_value& v) { s.agent.token_budget = large(v); }},
  };
}

std::vector<option_spec> sandbox_rows() {
  using t = option_type;
  constexpr std::string_view g = "Sandbox";
  return {
    {"executor",
     t::choice,
     "jail",
     0,
     0,
     {"jail", "process"},
     on_both,
     g,
     "what runs the agent's code (process: no isolation, for code you trust)",
     "",
     [](settings& s, const option_value& v) { s.sandbox.executor = text(v); }},
    {"profile",
     t::text,
     "default",
     0,
     0,
     {},
     on_both,
     g,
     "sandbox profile",
     "",
     [](settings& s, const option_value& v) { s.sandbox.profile = text(v); }},
    {"sandbox_memory",
     t::bytes,
     "1GiB",
     1 << 24,
     1099511627776.0,
     {},
     on_both,
     g,
     "memory of one sandbox",
     "",
     [](settings& s, const option_value& v) { s.sandbox.memory_bytes = large(v); }},
    {"sandbox_processes",
     t::whole,
     "64",
     4,
     32'768,
     {},
     on_both,
     g,
     "processes and threads in one sandbox",
     "",
     [](settings& s, const option_value& v) { s.sandbox.processes = count(v); }},
    {"max_sandboxes",
     t::whole,
     "0",
     0,
     10'000,
     {},
     on_both,
     g,
     "sandboxes open at once (0: as many as max_concurrency)",
     "",
     [](settings& s, const option_value& v) { s.sandbox.max_sandboxes = count(v); }},
  };
}

std::vector<option_spec> batch_rows() {
  using t = option_type;
  constexpr std::string_view g = "Batch";
  return {
    {"out",
     t::text,
     "",
     0,
     0,
     {},
     on_both,
     g,
     "journal that keeps events and results, e.g. out.db",
     "-o",
     [](settings& s, const option_value& v) { s.batch.out = text(v); }},
    {"max_concurrency",
     t::whole,
     "64",
     1,
     1'000'000,
     {},
     on_eval,
     g,
     "runs at once",
     "-n",
     [](settings& s, const option_value& v) { s.batch.max_concurrency = count(v); }},
    {"epochs",
     t::whole,
     "1",
     1,
     10'000,
     {},
     on_eval,
     g,
     "times that each sample is run",
     "",
     [](settings& s, const option_value& v) { s.batch.epochs = count(v); }},
    {"limit",
     t::whole,
     "0",
     0,
     i53_max,
     {},
     on_eval,
     g,
     "samples taken from the front of the dataset (0: all)",
     "",
     [](settings& s, const option_value& v) { s.batch.limit = large(v); }},
    {"scorer",
     t::choice,
     "",
     0,
     0,
     {"exact", "includes", "regex", "numeric"},
     on_eval,
     g,
     "how an answer is compared with the target",
     "",
     [](settings& s, const option_value& v) { s.batch.scorer = text(v); }},
    {"tolerance",
     t::real,
     "1e-6",
     0,
     1,
     {},
     on_eval,
     g,
     "relative tolerance of the numeric scorer",
     "",
     [](settings& s, const option_value& v) { s.batch.tolerance = std::get<double>(v); }},
    {"ignore_case",
     t::boolean,
     "false",
     0,
     0,
     {},
     on_eval,
     g,
     "compare letters without their case (exact, includes, regex)",
     "",
     [](settings& s, const option_value& v) { s.batch.ignore_case = std::get<bool>(v); }},
    {"fields",
     t::map,
     "",
     0,
     0,
     {"input", "target", "id", "metadata", "files", "choices"},
     on_eval,
     g,
     "the dataset's own field names, e.g. input=question,target=answer",
     "",
     [](settings& s, const option_value& v) { s.batch.fields = std::get<text_map>(v); }},
    {"retry_errors",
     t::boolean,
     "false",
     0,
     0,
     {},
     on_eval,
     g,
     "run the samples that ended as error again",
     "",
     [](settings& s, const option_value& v) { s.batch.retry_errors = std::get<bool>(v); }},
    {"skip_bad_lines",
     t::boolean,
     "false",
     0,
     0,
     {},
     on_eval,
     g,
     "leave out lines that are broken, and count them",
     "",
     [](settings& s, const option_value& v) { s.batch.skip_bad_lines = std::get<bool>(v); }},
  };
}

std::vector<option_spec> output_rows() {
  using t = option_type;
  constexpr std::string_view g = "Output";
  return {
    {"json",
     t::boolean,
     "false",
     0,
     0,
     {},
     on_both,
     g,
     "print JSON for machines",
     "",
     [](settings& s, const option_value& v) { s.output.json = std::get<bool>(v); }},
    {"no_color",
     t::boolean,
     "false",
     0,
     0,
     {},
     on_both,
     g,
     "no colours (the NO_COLOR variable does the same)",
     "",
     [](settings& s, const option_value& v) { s.output.no_color = std::get<bool>(v); }},
    {"quiet",
     t::boolean,
     "false",
     0,
     0,
     {},
     on_both,
     g,
     "no progress",
     "-q",
     [](settings& s, const option_value& v) { s.output.quiet = std::get<bool>(v); }},
    {"log_level",
     t::choice,
     "warn",
     0,
     0,
     {"trace", "debug", "info", "warn", "error", "off"},
     on_both,
     g,
     "least severe line of the log",
     "",
     [](settings& s, const option_value& v) { s.output.log_level = text(v); }},
  };
}

}  // namespace

const std::vector<option_spec>& option_table() {
  static const auto table = [] {
    std::vector<option_spec> all;
    for (auto rows : {model_rows(), agent_rows(), sandbox_rows(), batch_rows(), output_rows()})
      all.insert(all.end(), rows.begin(), rows.end());
    return all;
  }();
  return table;
}

const option_spec* find_option(std::string_view name) {
  for (const auto& row : option_table())
    if (row.name == name)
      return &row;
  return nullptr;
}

std::string flag_of(const option_spec& spec) {
  std::string flag = "--";
  for (auto c : spec.name)
    flag += c == '_' ? '-' : c;
  return flag;
}

std::string variable_of(const option_spec& spec) {
  std::string name = "TROUPE_";
  for (auto c : spec.name)
    name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

}  // namespace troupe
