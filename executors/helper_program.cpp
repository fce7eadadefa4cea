#include "executors/helper_program.hpp"

#include <filesystem>

namespace troupe {

std::string find_helper(const std::string& given, const std::string& name) {
  if (!given.empty())
    return given;
  std::error_code ec;
  auto dir = std::filesystem::read_symlink("/proc/self/exe", ec).parent_path();
  auto beside = dir / name;
  if (std::filesystem::exists(beside, ec))
    return beside;
  return dir.parent_path() / "libexec" / "troupe" / name;
}

}  // namespace troupe
