#include "executors/spec_check.hpp"

#include "runtime/core/text.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::uint64_t MiB = 1u << 20;

struct range {
  const char* name;
  std::uint64_t value;
  std::uint64_t least;
  std::uint64_t most;
};

result<void> check_limits(const sandbox_limits& l) {
  constexpr std::uint64_t huge = std::uint64_t{1} << 40;
  const range ranges[] = {
    {"open_timeout (ms)", static_cast<std::uint64_t>(l.open_timeout.count()), 1, 3'600'000},
    {"memory_bytes", l.memory_bytes, 128 * MiB, huge},
    {"processes", l.processes, 1, 1u << 20},
    {"open_files", l.open_files, 32, 1u << 20},  // the set-up itself needs some
    {"file_bytes", l.file_bytes, 0, huge},
    {"work_bytes", l.work_bytes, 4'096, huge},
    {"tmp_bytes", l.tmp_bytes, 4'096, huge},
    {"output_bytes", l.output_bytes, 1, huge},
    {"frame_bytes", l.frame_bytes, 256u << 10, 64 * MiB},  // a capped text and a traceback must fit
  };
  for (const auto& r : ranges)
    if (r.value < r.least || r.value > r.most)
      return fail(errc::invalid_argument, "sandbox limit " + std::string{r.name} + " is "
                                            + std::to_string(r.value) + ": it must be from "
                                            + std::to_string(r.least) + " to "
                                            + std::to_string(r.most));
  return {};
}

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > 1'024 || !is_utf8(path)
      || path.find('\0') != std::string_view::npos)
    return false;
  for (;;) {
    auto part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == ".." || part.size() > 255)
      return false;
    if (part.size() == path.size())
      return true;
    path.remove_prefix(part.size() + 1);
  }
}

result<void> check_files(const sandbox_spec& spec) {
  std::uint64_t total = 0;
  for (const auto& f : spec.files) {
    if (auto safe = check_path(f.path); !safe)
      return safe;
    total += f.bytes.size();
  }
  if (total > spec.limits.work_bytes)
    return fail(errc::invalid_argument, "the sandbox's files have " + std::to_string(total)
                                          + " bytes, more than work_bytes ("
                                          + std::to_string(spec.limits.work_bytes) + ")");
  return {};
}

/// Half of what the kernel takes for one argument (MAX_ARG_STRLEN).
constexpr std::size_t max_argument_bytes = 64u << 10;

/// Arguments and environment share a quarter of the stack's limit, 8 MiB.
constexpr std::size_t max_arguments_bytes = 1u << 20;

}  // namespace

result<void> check_path(std::string_view path) {
  if (is_safe_path(path))
    return {};
  return fail(errc::invalid_argument, "sandbox file '" + to_utf8(path.substr(0, 1'024))
                                        + "': give a path relative to /work, without '.' or '..'");
}

result<void> check_file(const sandbox_file& file, const sandbox_limits& limits) {
  if (auto safe = check_path(file.path); !safe)
    return safe;
  if (file.bytes.size() > limits.work_bytes)
    return fail(errc::invalid_argument,
                "sandbox file '" + file.path + "' has " + std::to_string(file.bytes.size())
                  + " bytes, more than work_bytes (" + std::to_string(limits.work_bytes) + ")");
  return {};
}

result<void> check_command(const shell_command& command, const sandbox_limits& limits) {
  if (command.argv.empty() || command.argv.front().empty())
    return fail(errc::invalid_argument, "a command needs the name of a program");
  std::size_t total = 0;
  for (const auto& a : command.argv) {
    total += a.size() + sizeof(char*);
    if (a.size() > max_argument_bytes || total > max_arguments_bytes)
      return fail(errc::invalid_argument, "the command's arguments are too long: put them into a "
                                          "file or its standard input");
    if (a.find('\0') != std::string::npos || !is_utf8(a))
      return fail(errc::invalid_argument,
                  "the command's argument '" + to_utf8(a) + "' has a NUL or is not UTF-8");
  }
  if (!is_utf8(command.stdin_text) || command.stdin_text.size() > limits.work_bytes)
    return fail(errc::invalid_argument,
                "the command's standard input is not UTF-8, or more than work_bytes");
  return command.cwd.empty() ? result<void>{} : check_path(command.cwd);
}

result<void> check_spec(const sandbox_spec& spec, const std::vector<std::string>& profiles) {
  std::vector<std::string_view> names{profiles.begin(), profiles.end()};
  if (std::ranges::find(names, spec.profile) == names.end())
    return fail(errc::invalid_argument, "unknown sandbox profile '" + to_utf8(spec.profile) + "'"
                                          + did_you_mean(spec.profile, names));
  for (const auto& t : spec.tools)
    if (t.name.empty() || !(t.parameters.is_object() || t.parameters.is_null()))
      return fail(errc::invalid_argument,
                  "tool '" + t.name + "' needs a name and an object schema of its parameters");
  if (auto files = check_files(spec); !files)
    return files;
  return check_limits(spec.limits);
}

}  // namespace troupe
