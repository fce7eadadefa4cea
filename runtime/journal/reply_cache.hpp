#pragma once
// Model replies kept from one run of the program to the next, so that none is paid twice.

#include "runtime/core/error.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// A SQLite file that several processes may share. Resource; one thread at a time. Every call reads
/// or writes the disk.
class reply_cache {
public:
  /// Opens the file, or makes it and the folders above it.
  /// Errors  corrupt: it is no cache of ours; invalid_argument: a newer version's; or SQLite's.
  static result<std::unique_ptr<reply_cache>> open(const std::string& path);
  ~reply_cache();
  reply_cache(const reply_cache&) = delete;
  reply_cache& operator=(const reply_cache&) = delete;

  /// The text kept for `key`: of several replies to one request, that of number `draw`. Nothing
  /// when there is none as young as `since`, in seconds since the Unix epoch.
  [[nodiscard]] result<std::optional<std::string>> find(std::string_view key, std::uint32_t draw,
                                                        std::int64_t since);

  /// Keeps it, in the place of an older one. It is durable after the next commit; a crash before
  /// loses it.
  [[nodiscard]] result<void> keep(std::string_view key, std::uint32_t draw, std::string_view text,
                                  std::int64_t now);

  [[nodiscard]] result<void> commit();

private:
  struct impl;
  explicit reply_cache(std::unique_ptr<impl> i);
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe
