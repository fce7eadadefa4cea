#pragma once
// What the Responses API remembers of a conversation between two requests.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace troupe {

/// The newest replies by their id, as much as fits into a bound.
class mock_past {
public:
  struct entry {
    std::string task;
    std::uint32_t turns = 0;  ///< replies so far, this one included
  };

  explicit mock_past(std::size_t max_bytes) : max_bytes_{max_bytes} {}

  void keep(const std::string& id, entry e);
  [[nodiscard]] std::optional<entry> find(const std::string& id) const;

private:
  [[nodiscard]] static std::size_t cost_of(const std::string& id, const entry& e);

  std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::unordered_map<std::string, entry> entries_;
  std::deque<std::string> order_;
};

}  // namespace troupe
