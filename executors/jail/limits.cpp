#include "executors/jail/limits.hpp"

#include "executors/jail/sys.hpp"

#include <algorithm>

#include <sys/resource.h>

namespace troupe::jail {

void set_limits(const spawn_request& request) {
  struct entry {
    __rlimit_resource resource;
    rlim_t limit;
    const char* name;
  };
  const entry table[] = {
    {RLIMIT_CORE, 0, "RLIMIT_CORE"},
    {RLIMIT_MEMLOCK, 0, "RLIMIT_MEMLOCK"},
    {RLIMIT_MSGQUEUE, 0, "RLIMIT_MSGQUEUE"},
    {RLIMIT_SIGPENDING, 64, "RLIMIT_SIGPENDING"},
    {RLIMIT_STACK, 8u << 20, "RLIMIT_STACK"},
    {RLIMIT_NOFILE, request.open_files, "RLIMIT_NOFILE"},
    {RLIMIT_NPROC, request.processes != 0 ? request.processes : RLIM_INFINITY, "RLIMIT_NPROC"},
    {RLIMIT_FSIZE, request.file_bytes, "RLIMIT_FSIZE"},
    {RLIMIT_AS, request.memory_bytes, "RLIMIT_AS"},
  };
  for (const auto& e : table) {
    if (e.limit == RLIM_INFINITY)
      continue;
    rlimit current{};
    must(::getrlimit(e.resource, &current) == 0, e.name);
    auto limit = std::min(e.limit, current.rlim_max);
    current = {limit, limit};
    must(::setrlimit(e.resource, &current) == 0, e.name);
  }
}

}  // namespace troupe::jail
