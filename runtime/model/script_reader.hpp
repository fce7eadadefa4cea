#pragma once
// Reads the objects of a mock script strictly: an unknown key and a wrong type are errors that say
// where they stand.

#include "runtime/core/error.hpp"
#include "runtime/core/json.hpp"
#include "runtime/core/time.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Reads one object's members, keeping the first error. Places read like "rules[2].reply".
class script_reader {
public:
  /// `place` is empty for the script itself. `object` must outlive the reader.
  script_reader(const json& object, std::string place, std::vector<std::string_view> known);

  [[nodiscard]] std::string at(std::string_view name) const;

  /// The member, or null when it is absent or an error was met before.
  [[nodiscard]] const json* find(std::string_view name) const;

  std::optional<std::string> text(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  std::optional<double> number(std::string_view name, double least, double most);
  std::optional<std::uint64_t> count(std::string_view name);  ///< a whole number
  std::optional<millis> span(std::string_view name);          ///< milliseconds, at most a day

  void require(std::string_view name);

  /// Calls `read` with each element of the array member `name`, if there is one, and its place.
  using read_fn = std::function<std::optional<error>(const json&, const std::string& place)>;
  void each(std::string_view name, std::string_view of_what, const read_fn& read);

  void set_error(const std::string& place, std::string_view what);
  void set_error(std::optional<error> e);
  [[nodiscard]] const std::optional<error>& failed() const { return error_; }

private:
  const json& object_;
  std::string place_;
  std::optional<error> error_;
};

}  // namespace troupe
