#include "config/option_rows.hpp"
#include "runtime/model/mock_faults.hpp"

namespace troupe {

using namespace rows;

std::vector<option_spec> mock_rows() {
  using t = option_type;
  constexpr std::string_view g = "Mock server";
  constexpr double most = i53_max;
  return {
    {"address",
     t::text,
     "127.0.0.1",
     0,
     0,
     {},
     on_mock,
     g,
     "address to listen on; what is no loopback address lets others in",
     "",
     [](settings& s, const option_value& v) { s.mock.address = std::get<std::string>(v); }},
    {"port",
     t::whole,
     "8400",
     0,
     65535,
     {},
     on_mock,
     g,
     "port to listen on; 0: the system picks one, and it is printed",
     "",
     [](settings& s, const option_value& v) {
       s.mock.port = static_cast<std::uint16_t>(std::get<std::int64_t>(v));
     }},
    {"require_key",
     t::boolean,
     "false",
     0,
     0,
     {},
     on_mock,
     g,
     "answer 401 to requests without a key",
     "",
     [](settings& s, const option_value& v) { s.mock.require_key = std::get<bool>(v); }},
    {"latency",
     t::duration,
     "",
     0,
     86'400,
     {},
     on_mock,
     g,
     "time to every reply, instead of the script's",
     "",
     [](settings& s, const option_value& v) { s.mock.latency = std::get<millis>(v); }},
    {"allowed_rpm",
     t::whole,
     "",
     1,
     most,
     {},
     on_mock,
     g,
     "requests a minute that are allowed, instead of the script's",
     "",
     [](settings& s, const option_value& v) {
       s.mock.allowed_rpm = static_cast<std::uint64_t>(std::get<std::int64_t>(v));
     }},
    {"allowed_tpm",
     t::whole,
     "",
     1,
     most,
     {},
     on_mock,
     g,
     "tokens a minute that are allowed, instead of the script's",
     "",
     [](settings& s, const option_value& v) {
       s.mock.allowed_tpm = static_cast<std::uint64_t>(std::get<std::int64_t>(v));
     }},
    {"faults", t::map, "", 0, 0, fault_kind_names(), on_mock, g,
     "faults and their rates, e.g. rate_limited=0.3,cut=0.01, instead of the script's", "",
     [](settings& s, const option_value& v) {
       s.mock.faults = std::get<std::map<std::string, std::string>>(v);
     }},
    {"stats_every",
     t::duration,
     "",
     0,
     86'400,
     {},
     on_mock,
     g,
     "print figures this often; 0: never [5s on a terminal]",
     "",
     [](settings& s, const option_value& v) { s.mock.stats_every = std::get<millis>(v); }},
  };
}

}  // namespace troupe
