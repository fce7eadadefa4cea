#pragma once
// The file system that all sandboxes of a zygote share: read-only, built once.

#include <string>
#include <vector>

namespace troupe::jail {

/// A directory or file of the host, seen read-only in the root.
struct extra_mount {
  std::string from;
  std::string to;
};

struct root_settings {
  std::string directory;              ///< a root that the user has made; empty: of the host's parts
  std::string python;                 ///< its program, as the root will name it
  std::vector<std::string> programs;  ///< of the host, by name, beyond the usual few
  std::vector<extra_mount> mounts;
};

/// Builds the root, makes it the caller's and lets go of the old one. Afterwards nothing of the
/// host but the bound trees can be reached. Throws setup_error.
///
/// Of the host's parts: the interpreter and its libraries, the shared libraries and /usr/share, and
/// a few programs (see root.cpp). No compiler, no setuid file, nothing of /etc, /home, /opt, /var.
void enter_template_root(const root_settings& settings);

}  // namespace troupe::jail
