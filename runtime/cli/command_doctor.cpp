#include "runtime/cli/commands.hpp"
#include "runtime/host/doctor.hpp"

#include <cstdio>

namespace troupe::cli {

int doctor_command(const words& arguments) {
  auto as_json = arguments == words{"--json"};
  if (!arguments.empty() && !as_json)
    return complain(usage, "doctor takes --json or nothing");
  auto findings = examine_machine();
  if (as_json)
    std::puts(dump_json(to_json(findings)).c_str());
  else
    std::fputs(show(findings).c_str(), stdout);
  return all_needed_work(findings) ? done : failed;
}

}  // namespace troupe::cli
