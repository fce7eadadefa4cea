#include "config/yaml_mapping.hpp"

#include "runtime/core/text.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>

namespace troupe {
namespace {

constexpr std::size_t max_file_bytes = 1u << 20;

std::string line_of(const std::string& name, const YAML::Mark& mark) {
  return mark.line < 0 ? name : fmt::format("{}, line {}", name, mark.line + 1);
}

tl::unexpected<error> bad(const std::string& where, std::string_view what) {
  return fail(errc::invalid_argument, fmt::format("{}: {}", where, what));
}

result<const option_spec*> row_of(const std::string& key, const mapping_kind& kind,
                                  const std::string& where) {
  if (auto* row = kind.find(key))
    return row;
  if (auto why = kind.refusal ? kind.refusal(key) : std::string{}; !why.empty())
    return bad(where, why);
  return bad(
    where, fmt::format("unknown key '{}'{}", utf8_prefix(key, 80), did_you_mean(key, kind.names)));
}

/// The words of a value; a null counts as not written.
result<std::vector<std::string>> words_of(const option_spec& row, const YAML::Node& value,
                                          const std::string& where) {
  std::vector<std::string> words;
  if (value.IsScalar())
    words.push_back(value.Scalar());
  else if (value.IsSequence() && row.takes_several())
    for (const auto& x : value) {
      if (!x.IsScalar())
        return bad(where, fmt::format("{}: each element must be a text", row.name));
      words.push_back(x.Scalar());
    }
  else if (value.IsMap() && row.type == option_type::map)
    for (const auto& x : value) {
      if (!x.first.IsScalar() || !x.second.IsScalar())
        return bad(where, fmt::format("{}: each name must stand for a text", row.name));
      words.push_back(x.first.Scalar() + "=" + x.second.Scalar());
    }
  else if (!value.IsNull())
    return bad(where, fmt::format("{}: a {} is not {}", row.name,
                                  value.IsMap() ? "mapping" : "sequence", accepted_form(row)));
  return words;
}

result<std::vector<option_input>> inputs_of(const YAML::Node& root, const std::string& name,
                                            const mapping_kind& kind) {
  std::vector<option_input> inputs;
  std::set<std::string> seen;
  for (const auto& pair : root) {
    auto where = line_of(name, pair.first.Mark());
    if (!pair.first.IsScalar())
      return bad(where, "expected 'option: value'");
    auto key = pair.first.Scalar();
    auto row = row_of(key, kind, where);
    if (!row)
      return fail(row.error());
    if (!seen.insert(key).second)
      return bad(where, fmt::format("'{}' stands in the file twice", key));
    auto words = words_of(**row, pair.second, where);
    if (!words)
      return fail(words.error());
    if (!pair.second.IsNull())
      inputs.push_back({key, *words, where});
  }
  return inputs;
}

}  // namespace

result<std::string> read_small_file(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0)
    return fail(errno == ENOENT ? errc::not_found : errc::denied, path + ": " + errno_text(errno));
  if (!S_ISREG(about.st_mode))
    return fail(errc::invalid_argument, path + ": is not a regular file");
  if (about.st_size > static_cast<off_t>(max_file_bytes))
    return fail(errc::invalid_argument,
                path + ": is larger than 1 MiB, more than such a file may have");
  errno = 0;
  std::ifstream in{path, std::ios::binary};
  if (!in)
    return fail(errc::denied, path + ": " + errno_text(errno));
  return std::string{std::istreambuf_iterator<char>{in}, {}};
}

result<std::vector<option_input>> parse_mapping(std::string_view text, const std::string& name,
                                                const mapping_kind& kind) {
  if (!is_utf8(text))
    return bad(name, "is not valid UTF-8");
  try {
    auto documents = YAML::LoadAll(std::string{text});
    if (documents.empty() || documents.front().IsNull())
      return std::vector<option_input>{};
    if (documents.size() > 1)
      return bad(name, "holds more than one YAML document");
    if (!documents.front().IsMap())
      return bad(line_of(name, documents.front().Mark()), "expected lines of 'option: value'");
    return inputs_of(documents.front(), name, kind);
  } catch (const YAML::Exception& e) {
    return bad(line_of(name, e.mark), e.msg);
  }
}

}  // namespace troupe
