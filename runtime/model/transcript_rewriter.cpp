#include "runtime/model/transcript_rewriter.hpp"

#include "runtime/core/json.hpp"

#include <utility>

namespace troupe {
namespace {

struct span {
  std::size_t at = 0;
  std::size_t size = 0;
};

/// The longest string literal in a message's wire form, with its quotes. Codecs write texts as JSON
/// strings and nothing else between quotes.
span longest_literal(std::string_view wire) {
  span longest;
  for (auto at = wire.find('"'); at < wire.size(); at = wire.find('"', at)) {
    auto end = at + 1;
    while (end < wire.size() && wire[end] != '"')
      end += wire[end] == '\\' ? 2 : 1;
    if (end >= wire.size())
      break;
    if (end + 1 - at > longest.size)
      longest = {at, end + 1 - at};
    at = end + 1;
  }
  return longest;
}

}  // namespace

transcript_rewriter::transcript_rewriter(const transcript& from)
  : from_{from}, text_{from.view().text()}, out_{from.encode_} {}

bool transcript_rewriter::keep(std::size_t i) {
  if (!fits(i))
    return false;
  out_.write(bytes_of(i), from_.marks_[i].state, from_.marks_[i].from);
  return true;
}

bool transcript_rewriter::keep(std::size_t i, const shorter_fn& shorter) {
  auto wire = bytes_of(i);
  auto literal = longest_literal(wire);
  auto text = parse_json(wire.substr(literal.at, literal.size));
  if (!text || !text->is_string())
    return keep(i);
  if (!fits(i))
    return false;
  std::string changed{wire.substr(0, literal.at)};
  append_json_string(changed, shorter(text->get_ref<const std::string&>()));
  changed += wire.substr(literal.at + literal.size);
  out_.write(changed, from_.marks_[i].state, from_.marks_[i].from);
  return true;
}

std::string_view transcript_rewriter::bytes_of(std::size_t i) const {
  auto start = from_.start_of(i);
  return std::string_view{text_}.substr(start, from_.marks_[i].end - start);
}

bool transcript_rewriter::fits(std::size_t i) const {
  auto before = i == 0 ? encoder_state{0} : from_.marks_[i - 1].state;
  return before == out_.state();
}

}  // namespace troupe
