#include "executors/helper_program.hpp"

#include <filesystem>

#include <dlfcn.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// The library that this code is in, or the program.
fs::path our_file() {
  Dl_info info{};
  std::error_code ec;
  if (::dladdr(reinterpret_cast<const void*>(&find_helper), &info) == 0)
    return {};
  return fs::canonical(info.dli_fname, ec);
}

}  // namespace

std::string find_helper(const std::string& given, const std::string& name) {
  if (!given.empty())
    return given;
  std::error_code ec;
  auto program = fs::read_symlink("/proc/self/exe", ec).parent_path();
  auto ours = our_file().parent_path();
  // A library lies in lib, or in one folder below it.
  for (const auto& place : {program / name, program.parent_path() / "libexec" / "troupe" / name,
                            ours / name, ours.parent_path() / "libexec" / "troupe" / name,
                            ours.parent_path().parent_path() / "libexec" / "troupe" / name})
    if (fs::exists(place, ec))
      return place;
  return program.parent_path() / "libexec" / "troupe" / name;
}

}  // namespace troupe
