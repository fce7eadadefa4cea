#include "config/agent_file.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/core/text.hpp"
#include "runtime/host/smolagents_import.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* help =
  "usage: troupe init [FILE or DIR]\n"
  "       troupe init [DIR] --from FOLDER\n\n"
  "Writes an agent file (agent.yaml) in which every key stands with its meaning and its default,\n"
  "for troupe run -a FILE and troupe eval -a FILE. No file is overwritten.\n\n"
  "  --from FOLDER  an agent that smolagents has saved (agent.json, prompts.yaml, "
  "managed_agents/):\n"
  "                 what can be carried over is, the rest is named with the reason\n";

struct init_words {
  std::string where;
  std::string from;
};

result<init_words> read_words(const words& arguments) {
  init_words out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& a = arguments[i];
    if (a == "--from" && i + 1 < arguments.size())
      out.from = arguments[++i];
    else if (a.starts_with("--from=") && a.size() > 7)
      out.from = a.substr(7);
    else if (a.starts_with('-'))
      return fail(errc::invalid_argument,
                  a == "--from" ? "--from takes a folder"
                                : "there is no option '" + a + "'" + did_you_mean(a, {"--from"}));
    else if (out.where.empty())
      out.where = a;
    else
      return fail(errc::invalid_argument, "init takes one file or folder");
  }
  return out;
}

/// Errors  denied: it is there already, or cannot be written.
result<void> write_new(const fs::path& path, const std::string& text) {
  auto fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0)
    return fail(errc::denied,
                errno == EEXIST
                  ? "'" + path.string() + "' is there already; give another name"
                  : "'" + path.string() + "' cannot be written: " + errno_text(errno));
  std::size_t done = 0;
  while (done < text.size()) {
    auto n = ::write(fd, text.data() + done, text.size() - done);
    if (n <= 0)
      break;
    done += static_cast<std::size_t>(n);
  }
  auto number = errno;
  if (::close(fd) != 0 || done < text.size()) {
    ::unlink(path.c_str());
    return fail(errc::unavailable,
                "'" + path.string() + "' cannot be written: " + errno_text(number));
  }
  return {};
}

int write_template(const std::string& where) {
  auto path = fs::path{where.empty() ? "agent.yaml" : where};
  std::error_code ec;
  if (fs::is_directory(path, ec) || where.ends_with('/'))
    path /= "agent.yaml";
  if (path.has_parent_path())
    fs::create_directories(path.parent_path(), ec);
  if (auto written = write_new(path, agent_file_template("my_agent")); !written)
    return complain(usage, written.error().detail);
  std::printf("%s\n", path.c_str());
  return done;
}

/// All or nothing, as far as names go: what is there already is found before the first is written.
int write_import(const std::string& where, const std::string& from) {
  auto found = import_smolagents(from);
  if (!found)
    return complain(usage, found.error().detail);
  auto folder = fs::path{where.empty() ? "." : where};
  std::error_code ec;
  fs::create_directories(folder, ec);
  for (const auto& [name, text] : found->files)
    if (fs::exists(folder / name, ec))
      return complain(usage, "'" + (folder / name).string()
                               + "' is there already; give another "
                                 "folder");
  for (const auto& [name, text] : found->files)
    if (auto written = write_new(folder / name, text); !written)
      return complain(usage, written.error().detail);
  for (const auto& line : found->left_out)
    std::fprintf(stderr, "left out: %s\n", line.c_str());
  std::printf("%s\n", (folder / found->main).lexically_normal().c_str());
  return done;
}

}  // namespace

int init_command(const words& arguments) {
  if (wants_help(arguments)) {
    std::fputs(help, stdout);
    return done;
  }
  auto w = read_words(arguments);
  if (!w)
    return complain(usage, w.error().detail + "; see troupe init --help");
  return w->from.empty() ? write_template(w->where) : write_import(w->where, w->from);
}

}  // namespace troupe::cli
