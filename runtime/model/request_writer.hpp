#pragma once
// Request bodies, member by member: what the codecs' writers share.

#include "runtime/core/json.hpp"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Writes `"name":value` members of one object; a member of `extra` takes the place of ours, and
/// one that is null takes ours away. Names in `reserved` are ours alone.
class member_writer {
public:
  member_writer(std::string& out, const json& extra,
                std::initializer_list<std::string_view> reserved);

  /// Writes the name; the value is the caller's to write. False: the member is not ours to write.
  [[nodiscard]] bool begin(std::string_view name);

  /// The members of `extra`; once, after all of ours.
  void extras();

  /// The name of one more member, which nothing replaces.
  void name(std::string_view name);

private:
  [[nodiscard]] bool is_reserved(std::string_view name) const;

  std::string& out_;
  const json& extra_;
  std::vector<std::string_view> reserved_;
  bool first_ = true;
};

/// `values` as an array: `write(out, value)` each.
template <class Values, class Write>
void append_array(std::string& out, const Values& values, Write write) {
  out += '[';
  auto first = true;
  for (auto& value : values) {
    if (!first)
      out += ',';
    first = false;
    write(out, value);
  }
  out += ']';
}

void append_strings(std::string& out, const std::vector<std::string>& strings);

/// In the order that its author gave it: models read a schema from front to back.
void append_schema(std::string& out, const ordered_json& schema);

/// The members of a JSON object's text behind others that stand already: `,"a":1`. Nothing for "{}"
/// and "".
void append_members_of(std::string& out, std::string_view object);

}  // namespace troupe
