#include "runtime/host/mock_setup.hpp"

#include "runtime/eval/read_file.hpp"
#include "runtime/model/mock_script.hpp"

#include <charconv>

namespace troupe {
namespace {

constexpr std::size_t longest_script = 1u << 30;
constexpr std::string_view no_script =
  R"({"default":"This is a mock server without a script: troupe mock script.json gives it one."})";

result<mock_script::data> read_script(const std::string& path) {
  if (path.empty())
    return read_mock_script(no_script);
  auto text = read_whole_file(path, longest_script, pipes::read_to_their_end);
  if (!text)
    return fail(text.error().code, "the mock's script: " + text.error().detail);
  auto read = read_mock_script(*text);
  if (!read)
    return fail(read.error().code, path + ": " + read.error().detail);
  return read;
}

result<fault_rule> fault_from(const std::string& kind, const std::string& rate) {
  fault_rule rule;
  rule.kind = fault_kind_from(kind).value_or(fault_kind::server);  // the table has checked it
  auto end = rate.data() + rate.size();
  auto read = std::from_chars(rate.data(), end, rule.rate);
  if (read.ec == std::errc{} && read.ptr == end && rule.rate >= 0 && rule.rate <= 1)
    return rule;
  return fail(errc::invalid_argument,
              "faults: the rate of " + kind + " is '" + rate + "'; it takes a number from 0 to 1");
}

result<void> lay_over(const mock_options& o, mock_script::data& script) {
  if (o.latency)
    script.latency = {.median = *o.latency, .sigma = 0, .cap = *o.latency};
  if (o.allowed_rpm > 0)
    script.limits.requests = o.allowed_rpm;
  if (o.allowed_tpm > 0)
    script.limits.tokens = o.allowed_tpm;
  if (!o.faults.empty())
    script.faults.clear();
  for (auto& [kind, rate] : o.faults) {
    auto rule = fault_from(kind, rate);
    if (!rule)
      return fail(rule.error());
    script.faults.push_back(*rule);
  }
  return {};
}

}  // namespace

result<std::unique_ptr<mock_server>> start_mock(const settings& options,
                                                const std::string& script_path) {
  auto script = read_script(script_path);
  if (!script)
    return fail(script.error());
  if (auto laid = lay_over(options.mock, *script); !laid)
    return fail(laid.error());
  mock_server_settings how;
  how.address = options.mock.address;
  how.port = options.mock.port;
  how.service.seed = static_cast<std::uint64_t>(options.model.seed.value_or(1));
  how.service.require_key = options.mock.require_key;
  return mock_server::start(mock_script::of(std::move(*script)), how);
}

}  // namespace troupe
