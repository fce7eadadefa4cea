#include "config/context_rows.hpp"

namespace troupe {
namespace {

const std::string& text(const option_value& v) {
  return std::get<std::string>(v);
}
std::uint32_t count(const option_value& v) {
  return static_cast<std::uint32_t>(std::get<std::int64_t>(v));
}
std::uint64_t large(const option_value& v) {
  return static_cast<std::uint64_t>(std::get<std::int64_t>(v));
}

}  // namespace

std::vector<option_spec> context_rows() {
  using t = option_type;
  constexpr std::string_view g = "Prompts and context";
  constexpr auto on_run = static_cast<std::uint8_t>(command::run);
  constexpr std::uint8_t on_both = on_run | static_cast<std::uint8_t>(command::eval);
  constexpr double most_tokens = 1e9;
  return {
    {"prompts",
     t::text,
     "",
     0,
     0,
     {},
     on_both,
     g,
     "YAML file of prompts, as smolagents' are; those it lacks stay the shipped ones",
     "",
     [](settings& s, const option_value& v) { s.agent.prompts = text(v); }},
    {"planning",
     t::whole,
     "0",
     0,
     10'000,
     {},
     on_both,
     g,
     "make a plan at first and after every so many steps (0: never)",
     "",
     [](settings& s, const option_value& v) { s.agent.planning = count(v); }},
    {"structured",
     t::boolean,
     "false",
     0,
     0,
     {},
     on_both,
     g,
     "a code agent's replies are JSON with thought and code, held to a schema by the provider",
     "",
     [](settings& s, const option_value& v) { s.agent.structured = std::get<bool>(v); }},
    {"answer_schema",
     t::text,
     "",
     0,
     0,
     {},
     on_both,
     g,
     "file with the JSON Schema that answers must fit",
     "",
     [](settings& s, const option_value& v) { s.agent.answer_schema = text(v); }},
    {"answer_retries",
     t::whole,
     "3",
     0,
     1'000,
     {},
     on_both,
     g,
     "answers that do not fit it, before one more ends the run",
     "",
     [](settings& s, const option_value& v) { s.agent.answer_retries = count(v); }},
    {"image",
     t::list,
     "",
     0,
     0,
     {},
     on_run,
     g,
     "image file (PNG, JPEG, GIF, WebP) or https: address that goes with the task; may be repeated",
     "",
     [](settings& s, const option_value& v) {
       s.agent.images = std::get<std::vector<std::string>>(v);
     }},
    {"context_window",
     t::whole,
     "0",
     0,
     most_tokens,
     {},
     on_both,
     g,
     "tokens that the model takes in one request (0: as its refusals say)",
     "",
     [](settings& s, const option_value& v) { s.agent.context_window = large(v); }},
    {"context_share",
     t::real,
     "0.8",
     0.1,
     1,
     {},
     on_both,
     g,
     "part of it from which on old observations are cut, then summed up",
     "",
     [](settings& s, const option_value& v) { s.agent.context_share = std::get<double>(v); }},
    {"keep_steps",
     t::whole,
     "3",
     1,
     1'000,
     {},
     on_both,
     g,
     "last steps that are then left as they are",
     "",
     [](settings& s, const option_value& v) { s.agent.keep_steps = count(v); }},
    {"observation_tokens",
     t::whole,
     "0",
     0,
     most_tokens,
     {},
     on_both,
     g,
     "longest observation, its middle is cut (0: a quarter of the window, if that is known)",
     "",
     [](settings& s, const option_value& v) { s.agent.observation_tokens = large(v); }},
  };
}

}  // namespace troupe
