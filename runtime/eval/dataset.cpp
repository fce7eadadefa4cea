#include "runtime/eval/dataset.hpp"

#include "runtime/core/digest.hpp"
#include "runtime/core/text.hpp"
#include "runtime/eval/read_file.hpp"
#include "runtime/eval/sample_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>

namespace troupe {
namespace {

constexpr std::size_t max_dataset_bytes = std::size_t{4} << 30;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

bool has_extension(const std::string& name, std::string_view extension) {
  auto have = std::filesystem::path{name}.extension().string();
  std::transform(have.begin(), have.end(), have.begin(), [](unsigned char c) {
    return static_cast<char>(c | (c >= 'A' && c <= 'Z' ? 32 : 0));
  });
  return have == extension;
}

result<std::vector<record>> split(std::string_view text, const std::string& name,
                                  const sample_reader& reader) {
  if (has_extension(name, ".json"))
    return split_array(text);
  if (has_extension(name, ".csv"))
    return split_csv(text, {reader.name_of("metadata"), reader.name_of("files"),
                            reader.name_of("images"), reader.name_of("choices")});
  return split_lines(text);
}

/// Takes samples one by one; knows which ids it has seen and where.
class collector {
public:
  collector(dataset& out, const dataset_options& options) : out_{out}, options_{options} {}

  /// Errors  what was wrong with the sample, unless bad lines are skipped.
  result<void> take(result<sample> read, std::size_t number) {
    if (read && read->id.empty())
      read->id = std::to_string(number);
    if (read) {
      auto [first, fresh] = lines_.emplace(read->id, read->line);
      if (!fresh)
        read = fail(errc::corrupt,
                    fmt::format("line {}, column 1: expected a new id, got '{}' again, the id of "
                                "line {}",
                                read->line, read->id, first->second));
    }
    if (read) {
      out_.samples.push_back(std::move(*read));
      return {};
    }
    auto message = out_.path + ", " + read.error().detail;
    if (!options_.skip_bad_lines)
      return fail(errc::corrupt, message + "; --skip-bad-lines goes on without such lines");
    if (out_.bad_lines++ < options_.shown_bad_lines)
      out_.bad_messages.push_back(std::move(message));
    return {};
  }

private:
  dataset& out_;
  const dataset_options& options_;
  std::unordered_map<std::string, std::size_t> lines_;
};

result<void> check_fields(const std::map<std::string, std::string>& fields) {
  const std::vector<std::string_view> ours{"input", "target", "id",     "metadata",
                                           "files", "images", "choices"};
  for (const auto& [name, theirs] : fields)
    if (std::find(ours.begin(), ours.end(), name) == ours.end())
      return fail(errc::invalid_argument,
                  fmt::format("fields: '{}' is none of {}{}", name, fmt::join(ours, ", "),
                              did_you_mean(name, ours)));
  return {};
}

result<dataset> check_not_empty(dataset data) {
  if (!data.samples.empty())
    return data;
  if (data.bad_lines > 0)
    return fail(errc::invalid_argument,
                fmt::format("{}: none of its {} samples can be used; the first: {}", data.path,
                            data.bad_lines,
                            data.bad_messages.empty() ? "?" : data.bad_messages.front()));
  return fail(errc::invalid_argument, data.path + ": has no samples");
}

}  // namespace

result<dataset> parse_dataset(std::string_view text, const std::string& name,
                              const std::string& folder, const dataset_options& options) {
  if (auto ok = check_fields(options.fields); !ok)
    return fail(ok.error());
  dataset out{name, sha256_hex(text), {}, 0, {}};
  if (text.starts_with(byte_order_mark))
    text.remove_prefix(byte_order_mark.size());
  sample_reader reader{options.fields, folder};
  auto records = split(text, name, reader);
  if (!records)
    return fail(records.error().code, name + ", " + records.error().detail);
  auto by_line = !has_extension(name, ".json") && !has_extension(name, ".csv");
  collector into{out, options};
  for (std::size_t i = 0; i < records->size(); ++i) {
    if (options.limit > 0 && out.samples.size() >= options.limit)
      break;
    const auto& one = (*records)[i];
    if (auto taken = into.take(reader.read(one), by_line ? one.begin.line : i + 1); !taken)
      return fail(taken.error());
  }
  return check_not_empty(std::move(out));
}

result<dataset> read_dataset(const std::string& path, const dataset_options& options) {
  auto text = read_whole_file(path, max_dataset_bytes, pipes::read_to_their_end);
  if (!text)
    return fail(text.error());
  auto folder = std::filesystem::path{path}.parent_path().string();
  return parse_dataset(*text, path, folder, options);
}

}  // namespace troupe
