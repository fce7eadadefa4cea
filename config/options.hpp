#pragma once
// Every option of `troupe run`, `troupe eval` and `troupe mock`: one table that the command line,
// the configuration file and the environment are read by, and the typed structs that come out.

#include "runtime/core/error.hpp"
#include "runtime/core/json.hpp"
#include "runtime/core/time.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

struct agent_file;

// --- what is asked for: typed -------------------------------------------------------------------

/// Which model, how it is reached, how it samples.
struct model_options {
  std::string model;                         ///< provider/model; empty when not given
  std::string base_url;                      ///< empty: the provider's
  std::vector<std::string> more_base_urls;   ///< of the same model
  std::vector<std::string> fallback_models;  ///< provider/model, in the order they are tried
  std::string api_key_env;                   ///< variable that holds the key; empty: the provider's
  std::string api = "auto";  ///< auto (the provider's own), chat, responses, messages
  std::string api_version;   ///< azure: api-version; messages: anthropic-version; empty: default
  std::vector<std::string> headers;  ///< "name=value", sent with every request
  std::optional<double> temperature;
  std::optional<std::uint32_t> max_tokens;  ///< of one reply
  std::optional<std::int64_t> seed;
  std::string reasoning_effort;           ///< the provider's word; empty: its default
  std::string extra_body;                 ///< JSON object merged into each request; empty: none
  millis request_timeout{300'000};        ///< one request, from sent to the whole reply
  millis stall_timeout{120'000};          ///< from one piece of a streamed reply to the next
  std::uint32_t attempts = 6;             ///< requests for one reply, the first included
  std::uint32_t max_connections = 0;      ///< requests in flight; 0: as many as max_concurrency
  std::uint64_t requests_per_minute = 0;  ///< that each endpoint allows; 0: not known
  std::uint64_t tokens_per_minute = 0;    ///< likewise, input and output
  std::string limits_file;                ///< of these three, while a batch runs; empty: none
  bool prompt_cache = true;               ///< marks for the provider's cache, where it wants any
  std::string cache = "off";              ///< of replies: off, on, read, refresh
  std::string cache_file;                 ///< empty: in the user's cache folder
  millis cache_max_age{0};                ///< older replies are not used; 0: any age is
  std::string record;                     ///< new file for all requests and replies; empty: none
  std::string replay;                     ///< such a file stands in for the model; empty: none
  std::string replay_match = "exact";     ///< exact, loose
  std::string proxy;    ///< "http://host:port"; "none"; empty: what the variables say
  std::string ca_file;  ///< PEM; empty: SSL_CERT_FILE, else the system's roots
};

/// What the agent is and when it stops.
struct agent_settings {
  std::string kind = "code";             ///< code, tool
  std::string tool_calls = "native";     ///< kind tool: native, text
  std::string tool_choice = "required";  ///< of native calls: required, auto
  std::string instructions;
  std::string prompts;               ///< YAML file; empty: the agent file's, or the shipped ones
  std::vector<std::string> tools;    ///< built-in tools; final_answer is always there
  std::vector<std::string> imports;  ///< module names, "a.*", "*"
  std::string approve = "auto";      ///< auto, ask, deny
  std::vector<std::string> approve_for{"*"};  ///< tools, managed agents, "code", "*"
  std::uint32_t max_steps = 20;
  millis run_time{0};              ///< whole run; 0: none
  millis step_time{30'000};        ///< one snippet, soft
  millis step_grace{5'000};        ///< from soft to hard
  std::uint64_t token_budget = 0;  ///< whole run; 0: none
  std::uint64_t call_budget = 0;   ///< requests of the whole run; 0: no limit
  double cost_budget = 0;          ///< of it, in the price list's currency; 0: no limit
  std::uint32_t planning = 0;      ///< steps from plan to plan; 0: no plans
  bool share_sandbox = false;      ///< the code of its managed agents runs in one
  bool structured = false;
  std::string answer_schema;                 ///< file; empty: any answer will do
  std::uint32_t answer_retries = 3;          ///< of answers that do not fit it
  std::vector<std::string> images;           ///< files, or https: URLs
  std::uint64_t context_window = 0;          ///< tokens; 0: not known
  double context_share = 0.8;                ///< of it
  std::uint32_t keep_steps = 3;              ///< that no compaction touches
  std::uint64_t observation_tokens = 0;      ///< of one; 0: by the window
  std::shared_ptr<const agent_file> file{};  ///< that describes the agent; null: none
};

struct sandbox_options {
  std::string executor = "jail";              ///< jail, process
  std::string profile = "default";            ///< a shipped one's name, or a file
  std::optional<std::uint64_t> memory_bytes;  ///< these five: instead of the profile's
  std::optional<std::uint32_t> processes;
  std::optional<double> cpus;          ///< 0: no limit of its own
  std::optional<bool> checkpoints;     ///< go back to before a snippet that was killed
  std::optional<std::uint32_t> ready;  ///< made ahead
  std::uint32_t max_sandboxes = 0;     ///< open at once; 0: as many as max_concurrency
};

/// What is special to a batch.
struct batch_options {
  std::string out;                     ///< journal; empty: named after the data set
  std::uint32_t max_concurrency = 64;  ///< runs at once
  std::uint32_t epochs = 1;
  std::uint64_t limit = 0;                    ///< samples taken from the front; 0: all
  std::string scorer;                         ///< exact, includes, regex, numeric; empty: none
  double tolerance = 1e-6;                    ///< numeric: relative
  bool ignore_case = false;                   ///< exact, includes, regex
  std::map<std::string, std::string> fields;  ///< our field -> the data set's
  std::uint64_t max_tokens_total = 0;         ///< input and output of the whole batch; 0: no limit
  std::uint64_t max_calls = 0;                ///< requests of the whole batch; 0: no limit
  double max_cost = 0;                        ///< of it, in the price list's currency; 0: no limit
  std::string prices;                         ///< price list; empty: the shipped one
  bool retry_errors = false;                  ///< results that ended as error are forgotten first
  bool skip_bad_lines = false;
};

/// What is special to the mock server. What is given here wins over its script.
struct mock_options {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8400;                  ///< 0: the system picks
  bool require_key = false;                   ///< a request without a key is refused
  std::optional<millis> latency;              ///< of every reply
  std::uint64_t allowed_rpm = 0;              ///< requests a minute; 0: as the script says
  std::uint64_t allowed_tpm = 0;              ///< tokens a minute; 0: as the script says
  std::map<std::string, std::string> faults;  ///< kind -> rate
  std::optional<millis> stats_every;          ///< 0: never; not set: 5 s on a terminal
};

struct output_options {
  bool json = false;
  bool no_color = false;
  bool quiet = false;  ///< no progress
  std::string log_level = "warn";
};

// --- where a value came from ---------------------------------------------------------------------

enum class value_origin : std::uint8_t { fallback, file, environment, flag };

/// One option as it is in force.
struct explained_option {
  std::string name;
  std::string value;  ///< in the accepted form; empty: not set
  value_origin origin = value_origin::fallback;
  std::string where;  ///< "default", "troupe.yaml, line 3", "TROUPE_MODEL", "--model"
};

/// All options of one command, checked.
struct settings {
  model_options model;
  agent_settings agent;
  sandbox_options sandbox;
  batch_options batch;
  mock_options mock;
  output_options output;
  std::vector<explained_option> explained;  ///< in the table's order, the command's options only
};

/// `--explain`: one line per option, "name  value  (where)".
[[nodiscard]] std::string explain(const settings& s);

/// The same as JSON for the batch record: {name: {"value": ..., "from": ...}}.
[[nodiscard]] json to_json(const settings& s);

// --- the table ----------------------------------------------------------------------------------

enum class command : std::uint8_t { run = 1, eval = 2, mock = 4 };

enum class option_type : std::uint8_t {
  text,
  whole,  ///< integer
  real,
  boolean,   ///< a flag without a word is true
  duration,  ///< "90", "90s", "1.5m", "250ms", "2h"; a bare number is seconds
  bytes,     ///< "512MiB", "1GB", "1073741824"
  choice,    ///< one of `choices`
  list,      ///< repeated, or separated by commas
  paths,     ///< repeated; a comma is a part of one
  map        ///< "ours=theirs", repeated, or separated by commas
};

/// A checked value: text and choice, whole and bytes, real, boolean, duration, list and paths, map.
using option_value = std::variant<std::string, std::int64_t, double, bool, millis,
                                  std::vector<std::string>, std::map<std::string, std::string>>;

/// One row. The name is the file's key; the flag and the variable follow from it.
struct option_spec {
  std::string_view name;  ///< e.g. "max_concurrency"
  option_type type = option_type::text;
  std::string_view fallback;              ///< in the accepted form; empty: not set
  double least = 0;                       ///< whole, real: value; duration: seconds; bytes: bytes
  double most = 0;                        ///< least == most: no range
  std::vector<std::string_view> choices;  ///< of a choice; of a map: its keys
  std::uint8_t commands = 0;              ///< bits of `command`
  std::string_view group;                 ///< heading in --help
  std::string_view help;                  ///< one line, no full stop
  std::string_view short_flag;            ///< e.g. "-m", or empty
  void (*assign)(settings& into, const option_value& value) = nullptr;

  /// True when a file may give a sequence for it.
  [[nodiscard]] bool takes_several() const noexcept {
    return type == option_type::list || type == option_type::paths;
  }
  [[nodiscard]] bool belongs_to(command c) const noexcept {
    return (commands & static_cast<std::uint8_t>(c)) != 0;
  }

  /// True when it is about an agent by itself: not its model, its sandbox, the task or the batch.
  [[nodiscard]] bool is_of_agents() const noexcept {
    return group == "Agent" || (group == "Prompts and context" && name != "image");
  }

  /// True when it is about one model: which, where, how it is asked.
  [[nodiscard]] bool is_of_models() const noexcept {
    return group == "Model" && name != "proxy" && name != "ca_file" && name != "limits_file";
  }
};

[[nodiscard]] const std::vector<option_spec>& option_table();

/// The row of that name, or null.
[[nodiscard]] const option_spec* find_option(std::string_view name);

[[nodiscard]] std::string flag_of(const option_spec& spec);      ///< "--max-concurrency"
[[nodiscard]] std::string variable_of(const option_spec& spec);  ///< "TROUPE_MAX_CONCURRENCY"

/// What the option takes, for messages and --help: "a whole number from 1 to 100000".
[[nodiscard]] std::string accepted_form(const option_spec& spec);

// --- from words to values
// --------------------------------------------------------------------------

/// One option as somebody wrote it. `words` has one element, or one per element of a list or map
/// ("ours=theirs"); none for a flag without a word.
struct option_input {
  std::string name;  ///< the table's name
  std::vector<std::string> words;
  std::string where;  ///< "troupe.yaml, line 3"; "--model"
};

/// The value of an environment variable, if it is set.
using env_lookup = std::function<std::optional<std::string>(const std::string& name)>;

/// The process's own environment.
[[nodiscard]] env_lookup process_environment();

/// Defaults < file < environment < flags, each checked against its row. Pure.
/// A file may hold options of the other commands: they are checked and not used. An empty
/// variable counts as not set. A list or map from a later source replaces the earlier one whole.
/// Errors  invalid_argument: where it stands, the option, the value, the accepted form; for an
///         unknown name the nearest one.
[[nodiscard]] result<settings> resolve(command for_command, const std::vector<option_input>& file,
                                       const env_lookup& env,
                                       const std::vector<option_input>& flags);

/// Puts one option into settings that are there, after the same checks.
/// Errors  as resolve.
[[nodiscard]] result<void> assign(settings& into, const option_input& in);

/// Variables that begin with TROUPE_ and belong to no option, each as a warning with the nearest
/// name. `known` are other TROUPE_ variables that mean something to the caller.
[[nodiscard]] std::vector<std::string>
unknown_variables(const std::vector<std::string>& names,
                  const std::vector<std::string_view>& known);

// --- the configuration file
// ------------------------------------------------------------------------

/// Reads the text of a YAML file (`name` is for messages): one mapping of option names.
/// Errors  invalid_argument: file and line, what was expected, the nearest key, a key that stands
///         twice; `api_key` is refused with the mend (name a variable instead).
[[nodiscard]] result<std::vector<option_input>> parse_config(std::string_view text,
                                                             const std::string& name);

/// Reads `path`, or when it is empty ./troupe.yaml if there is one (else nothing).
/// Errors  not_found, denied (file unreadable), or parse_config's.
[[nodiscard]] result<std::vector<option_input>> read_config(const std::string& path);

}  // namespace troupe
