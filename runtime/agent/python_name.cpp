#include "runtime/agent/python_name.hpp"

#include <algorithm>
#include <array>

namespace troupe {
namespace {

using namespace std::string_view_literals;

constexpr std::array keywords{
  "False"sv,  "None"sv,   "True"sv,    "and"sv,      "as"sv,       "assert"sv, "async"sv,
  "await"sv,  "break"sv,  "class"sv,   "continue"sv, "def"sv,      "del"sv,    "elif"sv,
  "else"sv,   "except"sv, "finally"sv, "for"sv,      "from"sv,     "global"sv, "if"sv,
  "import"sv, "in"sv,     "is"sv,      "lambda"sv,   "nonlocal"sv, "not"sv,    "or"sv,
  "pass"sv,   "raise"sv,  "return"sv,  "try"sv,      "while"sv,    "with"sv,   "yield"sv};

constexpr std::array builtins{"Ellipsis"sv,
                              "NotImplemented"sv,
                              "__build_class__"sv,
                              "__debug__"sv,
                              "__import__"sv,
                              "abs"sv,
                              "aiter"sv,
                              "all"sv,
                              "anext"sv,
                              "any"sv,
                              "ascii"sv,
                              "bin"sv,
                              "bool"sv,
                              "breakpoint"sv,
                              "bytearray"sv,
                              "bytes"sv,
                              "callable"sv,
                              "chr"sv,
                              "classmethod"sv,
                              "compile"sv,
                              "complex"sv,
                              "delattr"sv,
                              "dict"sv,
                              "dir"sv,
                              "divmod"sv,
                              "enumerate"sv,
                              "eval"sv,
                              "exec"sv,
                              "exit"sv,
                              "filter"sv,
                              "float"sv,
                              "format"sv,
                              "frozenset"sv,
                              "getattr"sv,
                              "globals"sv,
                              "hasattr"sv,
                              "hash"sv,
                              "help"sv,
                              "hex"sv,
                              "id"sv,
                              "input"sv,
                              "int"sv,
                              "isinstance"sv,
                              "issubclass"sv,
                              "iter"sv,
                              "len"sv,
                              "list"sv,
                              "locals"sv,
                              "map"sv,
                              "max"sv,
                              "memoryview"sv,
                              "min"sv,
                              "next"sv,
                              "object"sv,
                              "oct"sv,
                              "open"sv,
                              "ord"sv,
                              "pow"sv,
                              "print"sv,
                              "property"sv,
                              "quit"sv,
                              "range"sv,
                              "repr"sv,
                              "reversed"sv,
                              "round"sv,
                              "set"sv,
                              "setattr"sv,
                              "slice"sv,
                              "sorted"sv,
                              "staticmethod"sv,
                              "str"sv,
                              "sum"sv,
                              "super"sv,
                              "tuple"sv,
                              "type"sv,
                              "vars"sv,
                              "zip"sv};

bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace

bool is_python_identifier(std::string_view name) noexcept {
  if (name.empty() || name.size() > 64 || !is_letter(name.front()))
    return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

bool is_python_keyword(std::string_view name) noexcept {
  return std::find(keywords.begin(), keywords.end(), name) != keywords.end();
}

bool is_python_builtin(std::string_view name) noexcept {
  return std::find(builtins.begin(), builtins.end(), name) != builtins.end();
}

}  // namespace troupe
