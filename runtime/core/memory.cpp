#include "runtime/core/memory.hpp"

#include <fstream>
#include <string>

namespace troupe {

std::uint64_t available_memory() {
  std::ifstream in{"/proc/meminfo"};
  std::string key, unit;
  for (std::uint64_t kib = 0; in >> key >> kib >> unit;)
    if (key == "MemAvailable:")
      return kib << 10;
  return 0;
}

}  // namespace troupe
