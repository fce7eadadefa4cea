#include "runtime/agent/template_check.hpp"

#include "runtime/core/text.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>
#include <vector>

namespace troupe {
namespace {

using name_set = std::set<std::string, std::less<>>;

constexpr auto npos = std::string_view::npos;

struct token {
  enum kind { word, text, other } what = other;
  std::string_view lexeme;  ///< of a text: without its quotes
  std::size_t at = 0;
  bool opens_block = false;  ///< the first word of a {% %}
};

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// The tokens of all {{ }} and {% %}; the text between is no concern of ours.
class lexer {
public:
  explicit lexer(std::string_view source) : source_{source} {
    for (auto open = source_.find('{'); open != npos; open = source_.find('{', open)) {
      auto mark = open + 1 < source_.size() ? source_[open + 1] : ' ';
      if (mark == '#')
        open = std::min(source_.find("#}", open), source_.size() - 1) + 1;
      else if (mark == '{' || mark == '%')
        open = read_tag(open + 2, mark);
      else
        ++open;
    }
  }

  std::vector<token> tokens;

private:
  std::size_t read_tag(std::size_t at, char mark) {
    auto close = mark == '{' ? "}}" : "%}";
    auto block_starts = mark == '%';
    while (at < source_.size() && source_.substr(at, 2) != close) {
      auto c = source_[at];
      auto from = at;
      if (c == '"' || c == '\'') {
        at = end_of_text(at);
        tokens.push_back({token::text, source_.substr(from + 1, at - from - 2), from, false});
      } else if (is_word_char(c)) {
        while (at < source_.size() && is_word_char(source_[at]))
          ++at;
        auto number = std::isdigit(static_cast<unsigned char>(c)) != 0;
        tokens.push_back({number ? token::other : token::word, source_.substr(from, at - from),
                          from, block_starts});
        block_starts = false;
      } else {
        ++at;
        if (std::isspace(static_cast<unsigned char>(c)) == 0)
          tokens.push_back({token::other, source_.substr(from, 1), from, false});
      }
    }
    tokens.push_back({token::other, "", at, false});  // keeps look-ahead inside the tag
    return std::min(at + 2, source_.size());
  }

  std::size_t end_of_text(std::size_t at) const {
    auto quote = source_[at];
    for (++at; at < source_.size() && source_[at] != quote; ++at)
      if (source_[at] == '\\')
        ++at;
    return std::min(at + 1, source_.size());
  }

  std::string_view source_;
};

const name_set& words_of_jinja() {
  static const name_set words{"if",   "elif", "else",      "in",    "is",    "not",
                              "and",  "or",   "true",      "false", "True",  "False",
                              "None", "null", "recursive", "loop",  "caller"};
  return words;
}

/// What the engine and our variables offer behind a dot.
const name_set& known_attributes() {
  static const name_set attributes{"name",
                                   "description",
                                   "inputs",
                                   "output_type",
                                   "to_code_prompt",
                                   "to_tool_calling_prompt",
                                   "values",
                                   "type",
                                   "nullable",
                                   "default",
                                   "enum",
                                   "items",
                                   "keys",
                                   "get",
                                   "pop",
                                   "append",
                                   "insert",
                                   "strip",
                                   "lstrip",
                                   "rstrip",
                                   "split",
                                   "capitalize",
                                   "upper",
                                   "lower",
                                   "endswith",
                                   "startswith",
                                   "title",
                                   "replace",
                                   "length",
                                   "index",
                                   "index0",
                                   "revindex",
                                   "revindex0",
                                   "first",
                                   "last",
                                   "previtem",
                                   "nextitem",
                                   "cycle"};
  return attributes;
}

class checker {
public:
  checker(std::string_view source, const template_names& names)
    : source_{source}, names_{names}, lexed_{source} {}

  result<checked_template> run() {
    for (std::size_t i = 0; i < tokens().size(); ++i)
      collect(i);
    for (std::size_t i = 0; i < tokens().size(); ++i)
      if (auto ok = check(i); !ok)
        return fail(ok.error());
    out_.source = rewritten();
    return std::move(out_);
  }

private:
  const std::vector<token>& tokens() const { return lexed_.tokens; }

  /// Token `i + offset`, or an empty one.
  token at(std::size_t i, int offset) const {
    auto n = static_cast<std::ptrdiff_t>(i) + offset;
    return n >= 0 && n < std::ssize(tokens()) ? tokens()[static_cast<std::size_t>(n)] : token{};
  }
  bool is(std::size_t i, int offset, std::string_view lexeme) const {
    return at(i, offset).lexeme == lexeme;
  }

  /// Notes what the template itself declares: loop variables, set, macros, keyword arguments.
  void collect(std::size_t i) {
    auto t = at(i, 0);
    if (t.what == token::text)
      declared_.emplace(t.lexeme);
    if (t.what != token::word)
      return;
    if (is(i, -1, "macro") && at(i, -1).opens_block)
      macros_.emplace(t.lexeme);
    auto assigned = is(i, 1, "=") && !is(i, 2, "=");
    if (assigned || in_declaration(i))
      declared_.emplace(t.lexeme);
    auto tested = is(i, 1, "is") && (is(i, 2, "defined") || is(i, 3, "defined"));
    if (tested || (is(i, 1, "|") && is(i, 2, "default")))
      out_.guarded.emplace(t.lexeme);
  }

  /// True after {% for / set / macro %}, up to the word or sign that ends the names.
  bool in_declaration(std::size_t i) const {
    for (int back = -1;; --back) {
      auto t = at(i, back);
      if (t.opens_block)
        return t.lexeme == "for" || t.lexeme == "set" || t.lexeme == "macro";
      if (t.lexeme.empty() || t.lexeme == "in" || t.lexeme == "=" || t.lexeme == ")")
        return false;
    }
  }

  /// What would end our process: the engine divides by zero, and calls as deep as the stack.
  result<void> check_safety(std::size_t i) {
    auto t = at(i, 0);
    if (t.what == token::other && (t.lexeme == "/" || t.lexeme == "%") && !is(i, -1, "/"))
      return divides_safely(i) ? result<void>{}
                               : bad(t, "'" + std::string{t.lexeme}
                                          + "' must have a number other than 0 behind it");
    if (t.opens_block && t.lexeme == "macro")
      macro_ = at(i, 1).lexeme;
    else if (t.opens_block && t.lexeme == "endmacro")
      finished_macros_.emplace(std::exchange(macro_, {}));
    else if (!macro_.empty() && t.what == token::word && is(i, 1, "(") && !is(i, -1, "macro")
             && macros_.contains(t.lexeme) && !finished_macros_.contains(t.lexeme))
      return bad(t, "the macro '" + std::string{t.lexeme} + "' must end before it is called");
    return {};
  }

  [[nodiscard]] bool divides_safely(std::size_t i) const {
    auto by = at(i, is(i, 1, "/") ? 2 : 1).lexeme;
    return !by.empty() && std::isdigit(static_cast<unsigned char>(by.front())) != 0
           && by.find_first_of("123456789") != npos;
  }

  result<void> check(std::size_t i) {
    if (auto safe = check_safety(i); !safe)
      return safe;
    auto t = at(i, 0);
    if (t.what != token::word || t.opens_block || words_of_jinja().contains(t.lexeme))
      return {};
    if (is(i, -1, "is") || (is(i, -1, "not") && is(i, -2, "is")))
      return {};  // a test; the engine knows its own
    if (is(i, -1, "."))
      return known_attributes().contains(t.lexeme) || declared_.contains(t.lexeme)
               ? result<void>{}
               : unknown("attribute", t, known_attributes());
    if (names_.variables.contains(t.lexeme))
      out_.used.emplace(t.lexeme);
    else if (!declared_.contains(t.lexeme) && !names_.functions.contains(t.lexeme)
             && !out_.guarded.contains(t.lexeme))
      return unknown("name", t, names_.variables);
    return {};
  }

  tl::unexpected<error> bad(const token& t, const std::string& what) const {
    auto line =
      1 + std::count(source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(t.at), '\n');
    return fail(errc::invalid_argument, "line " + std::to_string(line) + ": " + what);
  }

  result<void> unknown(std::string_view what, const token& t, const name_set& known) const {
    std::vector<std::string_view> candidates(known.begin(), known.end());
    return bad(t, "unknown " + std::string{what} + " '" + std::string{t.lexeme} + "'"
                    + did_you_mean(t.lexeme, candidates));
  }

  /// The engine has no dict.values(), but can call a filter of that name.
  std::string rewritten() const {
    std::string out;
    std::size_t done = 0;
    for (std::size_t i = 0; i < tokens().size(); ++i) {
      if (!is(i, 0, "values") || !is(i, -1, ".") || !is(i, 1, "(") || !is(i, 2, ")"))
        continue;
      auto object = at(i, -2);
      if (object.what != token::word || is(i, -3, "."))
        continue;
      out += source_.substr(done, object.at - done);
      out += "(" + std::string{object.lexeme} + "|values)";
      done = at(i, 2).at + 1;
    }
    return out += source_.substr(done);
  }

  std::string_view source_;
  const template_names& names_;
  lexer lexed_;
  name_set declared_;
  name_set macros_;           ///< all of the template
  name_set finished_macros_;  ///< up to the token that is checked
  std::string_view macro_;    ///< in which that token stands; empty: none
  checked_template out_;
};

}  // namespace

result<checked_template> check_template(std::string_view source, const template_names& names) {
  return checker{source, names}.run();
}

}  // namespace troupe
