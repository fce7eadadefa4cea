#include "executors/jail/landlock.hpp"

#include "executors/jail/sys.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

// The kernel's interface, whole: the distribution's header may be older than the kernel.
// Source  Linux, include/uapi/linux/landlock.h.

enum file_access : std::uint64_t {
  execute = 1u << 0,
  write_to_file = 1u << 1,
  read_file = 1u << 2,
  read_directory = 1u << 3,
  remove_directory = 1u << 4,
  remove_file = 1u << 5,
  make_character_device = 1u << 6,
  make_directory = 1u << 7,
  make_regular = 1u << 8,
  make_socket = 1u << 9,
  make_fifo = 1u << 10,
  make_block_device = 1u << 11,
  make_link = 1u << 12,
  refer = 1u << 13,         // version 2
  cut_short = 1u << 14,     // version 3
  device_ioctl = 1u << 15,  // version 5
};

constexpr std::uint64_t bind_tcp = 1u << 0;  // version 4
constexpr std::uint64_t connect_tcp = 1u << 1;
constexpr std::uint64_t scope_abstract_sockets = 1u << 0;  // version 6
constexpr std::uint64_t scope_signals = 1u << 1;

struct ruleset_attributes {
  std::uint64_t files = 0;
  std::uint64_t network = 0;
  std::uint64_t scoped = 0;
};

struct [[gnu::packed]] path_rule {
  std::uint64_t access;
  std::int32_t directory;
};

struct port_rule {
  std::uint64_t access;
  std::uint64_t port;
};

constexpr int path_rule_kind = 1;
constexpr int port_rule_kind = 2;
constexpr unsigned ask_version = 1;

// --- what is allowed
// --------------------------------------------------------------------------------

constexpr std::uint64_t use = execute | read_file | read_directory;
constexpr std::uint64_t change = use | write_to_file | remove_directory | remove_file
                                 | make_directory | make_regular | make_socket | make_fifo
                                 | make_link | refer | cut_short;

struct allowed_path {
  const char* path;
  std::uint64_t access;
};

constexpr allowed_path allowed[] = {{"/", use},
                                    {"/work", change},
                                    {"/tmp", change},
                                    {"/dev/null", read_file | write_to_file | cut_short},
                                    {"/dev/zero", read_file | write_to_file | cut_short},
                                    {"/dev/full", read_file | write_to_file | cut_short}};

std::uint64_t known_files(int version) {
  std::uint64_t known = refer - 1;
  if (version >= 2)
    known |= refer;
  if (version >= 3)
    known |= cut_short;
  if (version >= 5)
    known |= device_ioctl;
  return known;
}

unique_fd create_ruleset(int version) {
  ruleset_attributes attributes;
  attributes.files = known_files(version);
  attributes.network = version >= 4 ? bind_tcp | connect_tcp : 0;
  attributes.scoped = version >= 6 ? scope_abstract_sockets | scope_signals : 0;
  auto size = version >= 6 ? sizeof attributes : version >= 4 ? 16 : 8;
  unique_fd ruleset{static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, size, 0))};
  must(static_cast<bool>(ruleset), "create a Landlock ruleset");
  return ruleset;
}

void allow_path(int ruleset, const allowed_path& rule, std::uint64_t known) {
  unique_fd at{::open(rule.path, O_PATH | O_CLOEXEC)};
  must(static_cast<bool>(at), rule.path);
  path_rule kernels{rule.access & known, at.get()};
  must(::syscall(SYS_landlock_add_rule, ruleset, path_rule_kind, &kernels, 0) == 0,
       "add a Landlock rule");
}

}  // namespace

int landlock_version() noexcept {
  auto version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, ask_version);
  return version > 0 ? static_cast<int>(version) : 0;
}

void enter_landlock(std::uint16_t port) {
  auto version = landlock_version();
  auto ruleset = create_ruleset(version);
  for (const auto& rule : allowed)
    allow_path(ruleset.get(), rule, known_files(version));
  if (port_rule to{connect_tcp, port}; port != 0 && version >= 4)
    must(::syscall(SYS_landlock_add_rule, ruleset.get(), port_rule_kind, &to, 0) == 0,
         "add a Landlock rule");
  must(::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0, "enter Landlock");
}

}  // namespace troupe::jail
