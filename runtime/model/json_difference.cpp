#include "runtime/model/json_difference.hpp"

#include "runtime/core/text.hpp"

#include <algorithm>
#include <set>

namespace troupe {
namespace {

constexpr std::size_t shown_before = 24;
constexpr std::size_t shown_bytes = 72;

/// Some of `text` around byte `at`, on one line.
std::string excerpt(std::string_view text, std::size_t at) {
  auto from = at > shown_before ? at - shown_before : 0;
  while (from > 0 && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80)
    --from;
  auto piece = utf8_prefix(text.substr(from), shown_bytes);
  auto more = from + piece.size() < text.size();
  return (from > 0 ? "…" : "") + std::string{piece} + (more ? "…" : "");
}

class comparison {
public:
  explicit comparison(std::size_t most) : most_{most} {}

  void compare(const json& before, const json& after, const std::string& path) {
    if (found.size() >= most_ || before == after)
      return;
    if (before.is_object() && after.is_object())
      compare_objects(before, after, path);
    else if (before.is_array() && after.is_array())
      compare_arrays(before, after, path);
    else
      tell(path, before, after);
  }

  std::vector<std::string> found;

private:
  void compare_objects(const json& before, const json& after, const std::string& path) {
    std::set<std::string> names;
    for (const auto* side : {&before, &after})
      for (const auto& member : side->items())
        names.insert(member.key());
    auto inside = path.empty() ? path : path + ".";
    for (const auto& name : names)
      compare_member(before, after, name, inside + name);
  }

  void compare_member(const json& before, const json& after, const std::string& name,
                      const std::string& path) {
    if (!after.contains(name))
      add(path + " is missing");
    else if (!before.contains(name))
      add(path + " is new: " + shown(after[name], 0));
    else
      compare(before[name], after[name], path);
  }

  void compare_arrays(const json& before, const json& after, const std::string& path) {
    auto both = std::min(before.size(), after.size());
    for (std::size_t i = 0; i < both; ++i)
      compare(before[i], after[i], path + "[" + std::to_string(i) + "]");
    if (before.size() != after.size())
      add(path + " has " + std::to_string(after.size()) + " elements, not "
          + std::to_string(before.size()));
  }

  void tell(const std::string& path, const json& before, const json& after) {
    auto was = dump_json(before), is = dump_json(after);
    auto differs = std::mismatch(was.begin(), was.end(), is.begin(), is.end());
    auto at = static_cast<std::size_t>(differs.first - was.begin());
    add((path.empty() ? "the whole" : path) + ": " + excerpt(was, at) + " is " + excerpt(is, at));
  }

  static std::string shown(const json& value, std::size_t at) {
    return excerpt(dump_json(value), at);
  }

  void add(std::string line) {
    if (found.size() < most_)
      found.push_back(std::move(line));
  }

  std::size_t most_;
};

}  // namespace

std::vector<std::string> differences(const json& before, const json& after, std::size_t most) {
  comparison all{most};
  all.compare(before, after, {});
  return std::move(all.found);
}

}  // namespace troupe
