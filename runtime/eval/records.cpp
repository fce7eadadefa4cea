#include "runtime/eval/records.hpp"

#include "runtime/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {
namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr auto npos = std::string_view::npos;

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(blanks, at), text.size());
}

/// Past the closing quote of the JSON string that opens at `at`.
std::size_t skip_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at)
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      return at + 1;
  return text.size();
}

/// The first comma or closing bracket after `at` that belongs to no inner value.
std::size_t end_of_value(std::string_view text, std::size_t at) {
  for (std::size_t depth = 0; at < text.size();) {
    auto c = text[at];
    if (c == '"') {
      at = skip_string(text, at);
      continue;
    }
    if (depth == 0 && (c == ',' || c == ']' || c == '}'))
      return at;
    depth += c == '[' || c == '{' ? 1 : 0;
    depth -= c == ']' || c == '}' ? 1 : 0;
    ++at;
  }
  return text.size();
}

tl::unexpected<error> bad(text_place where, std::string_view what) {
  return fail(errc::corrupt, to_string(where) + ": " + std::string{what});
}

struct csv_row {
  text_place begin;
  std::vector<std::string> cells;
};

/// RFC 4180; a quote inside an unquoted cell is taken as it stands.
class csv_reader {
public:
  explicit csv_reader(std::string_view text) : text_{text} {}

  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }

  result<csv_row> row() {
    csv_row out{{line_, 1}, {}};
    while (true) {
      auto cell = next_cell();
      if (!cell)
        return fail(cell.error());
      out.cells.push_back(std::move(*cell));
      if (at_end() || text_[at_] != ',')
        break;
      ++at_;
    }
    take_line_end();
    return out;
  }

private:
  result<std::string> next_cell() {
    if (at_end() || text_[at_] != '"') {
      auto end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
      auto cell = std::string{text_.substr(at_, end - at_)};
      at_ = end;
      return cell;
    }
    return quoted_cell();
  }

  result<std::string> quoted_cell() {
    auto opened = text_place{line_, 1 + at_ - line_begin_};
    std::string cell;
    for (++at_; !at_end(); ++at_) {
      if (text_[at_] == '"') {
        if (++at_ >= text_.size() || text_[at_] != '"')
          return cell + rest_of_cell();
      } else if (text_[at_] == '\n') {
        ++line_;
        line_begin_ = at_ + 1;
      }
      cell += text_[at_];
    }
    return bad(opened, "this quote is never closed");
  }

  std::string rest_of_cell() {
    auto end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    auto rest = std::string{text_.substr(at_, end - at_)};
    at_ = end;
    return rest;
  }

  void take_line_end() {
    if (!at_end() && text_[at_] == '\r')
      ++at_;
    if (!at_end() && text_[at_] == '\n')
      ++at_;
    ++line_;
    line_begin_ = at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t line_begin_ = 0;
};

bool is_blank(const csv_row& row) {
  return row.cells.size() == 1 && trim(row.cells[0]).empty();
}

record record_of(const csv_row& row, const csv_row& header,
                 const std::vector<std::string>& json_columns) {
  record out{row.begin, {}, json::object(), {}};
  if (row.cells.size() != header.cells.size())
    out.broken = fmt::format("expected {} cells as in the header, got {}", header.cells.size(),
                             row.cells.size());
  for (std::size_t i = 0; out.broken.empty() && i < row.cells.size(); ++i) {
    const auto& name = header.cells[i];
    if (row.cells[i].empty())
      continue;
    if (!is_utf8(row.cells[i])) {
      out.broken = fmt::format("'{}': expected UTF-8, got a byte that is not", to_utf8(name));
      break;
    }
    if (std::find(json_columns.begin(), json_columns.end(), name) == json_columns.end()) {
      out.row[name] = row.cells[i];
      continue;
    }
    auto cell = parse_json(row.cells[i]);
    if (cell)
      out.row[name] = std::move(*cell);
    else
      out.broken = fmt::format("'{}': expected JSON in the cell: {}", name, cell.error().detail);
  }
  return out;
}

}  // namespace

text_place place_at(std::string_view text, std::size_t offset, text_place begin) {
  auto before = text.substr(0, offset);
  auto newlines = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  if (newlines == 0)
    return {begin.line, begin.column + before.size()};
  return {begin.line + newlines, before.size() - before.rfind('\n')};
}

std::string to_string(text_place place) {
  return fmt::format("line {}, column {}", place.line, place.column);
}

std::vector<record> split_lines(std::string_view text) {
  std::vector<record> records;
  for (std::size_t line = 1; !text.empty(); ++line) {
    auto end = text.find('\n');
    auto one = text.substr(0, end);
    text.remove_prefix(end == npos ? text.size() : end + 1);
    if (one.ends_with('\r'))
      one.remove_suffix(1);
    if (!trim(one).empty())
      records.push_back({{line, 1}, one, nullptr, {}});
  }
  return records;
}

result<std::vector<record>> split_array(std::string_view text) {
  std::vector<record> records;
  auto at = skip_blanks(text, 0);
  if (at >= text.size() || text[at] != '[')
    return bad(place_at(text, at), "expected '[' : a .json dataset is one array of objects; one "
                                   "object per line is .jsonl");
  text_place seen{1, 1};
  std::size_t seen_at = 0;
  at = skip_blanks(text, at + 1);
  while (at < text.size() && text[at] != ']') {
    seen = place_at(text.substr(seen_at), at - seen_at, seen);
    seen_at = at;
    auto end = end_of_value(text, at);
    records.push_back({seen, trim(text.substr(at, end - at)), nullptr, {}});
    if (end >= text.size() || text[end] == '}')
      return bad(place_at(text, end), "expected ',' or ']' after the object");
    at = text[end] == ',' ? skip_blanks(text, end + 1) : end;
  }
  if (at >= text.size())
    return bad(place_at(text, at), "expected ']' at the end of the array");
  if (auto rest = skip_blanks(text, at + 1); rest < text.size())
    return bad(place_at(text, rest), "expected nothing after the array");
  return records;
}

result<std::vector<record>> split_csv(std::string_view text,
                                      const std::vector<std::string>& json_columns) {
  csv_reader reader{text};
  std::vector<record> records;
  if (reader.at_end())
    return records;
  auto header = reader.row();
  if (!header)
    return fail(header.error());
  while (!reader.at_end()) {
    auto row = reader.row();
    if (!row)
      return fail(row.error());
    if (!is_blank(*row))
      records.push_back(record_of(*row, *header, json_columns));
  }
  return records;
}

std::size_t find_member(std::string_view object, std::string_view key) {
  auto at = skip_blanks(object, 0);
  if (at >= object.size() || object[at] != '{')
    return npos;
  while (true) {
    at = skip_blanks(object, at + 1);
    if (at >= object.size() || object[at] != '"')
      return npos;
    auto end = skip_string(object, at);
    auto name = object.substr(at + 1, end - at - 2);
    auto value = skip_blanks(object, skip_blanks(object, end) + 1);
    if (name == key)
      return value;
    at = end_of_value(object, value);
    if (at >= object.size() || object[at] != ',')
      return npos;
  }
}

}  // namespace troupe
