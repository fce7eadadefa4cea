#pragma once
// The limits on a model that may change while a batch runs, as a file that is read again when it
// changes.

#include "config/options.hpp"

#include <optional>
#include <string>

namespace troupe {

/// `into` with what the text says of rpm, tpm and max_connections; what it leaves out stays. `name`
/// is for messages.
/// Errors  invalid_argument: file and line, what was expected, the nearest key.
[[nodiscard]] result<settings> parse_limits(std::string_view text, const std::string& name,
                                            settings into);

/// Tells when a file has changed. Never blocks for longer than reading a small file does.
class limits_watch {
public:
  /// `begin` are the options that hold where the file says nothing. An empty path: no file.
  limits_watch(std::string path, settings begin)
    : path_{std::move(path)}, begin_{std::move(begin)} {}

  /// The options with the file's, if it has not been read in this state before; nothing otherwise.
  /// Errors  not_found, denied, parse_limits's; each state of the file is complained of once.
  [[nodiscard]] std::optional<result<settings>> changed();

private:
  std::string path_;
  settings begin_;
  std::string seen_;
};

}  // namespace troupe
