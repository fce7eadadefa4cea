#pragma once
// Reads a JSON object that may be old, new or damaged into a struct: absent members keep their
// defaults, unknown ones are ignored, members of another type or range are errors.

#include "runtime/core/error.hpp"
#include "runtime/core/json.hpp"

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// Reads members one by one and remembers the first that does not fit; `done` tells.
/// Errors  corrupt: the object's name, the member, what was expected.
class member_reader {
public:
  member_reader(const json& object, std::string where) : object_{object}, where_{std::move(where)} {
    if (!object_.is_object())
      complain("", "an object");
  }

  [[nodiscard]] const json* find(std::string_view key) const {
    if (!object_.is_object())
      return nullptr;
    auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  member_reader& need(std::string_view key) {
    if (find(key) == nullptr)
      complain(key, "present");
    return *this;
  }

  member_reader& get(std::string_view key, std::string& out) {
    if (auto* x = find(key); x != nullptr && !x->is_string())
      complain(key, "a string");
    else if (x != nullptr)
      out = x->get_ref<const std::string&>();
    return *this;
  }

  member_reader& get(std::string_view key, bool& out) {
    if (auto* x = find(key); x != nullptr && !x->is_boolean())
      complain(key, "true or false");
    else if (x != nullptr)
      out = x->get<bool>();
    return *this;
  }

  template <class Unsigned>
    requires(std::is_unsigned_v<Unsigned> && !std::is_same_v<Unsigned, bool>)
  member_reader& get(std::string_view key, Unsigned& out) {
    auto* x = find(key);
    if (x == nullptr)
      return *this;
    auto negative =
      x->is_number_integer() && !x->is_number_unsigned() && x->get<std::int64_t>() < 0;
    if (!x->is_number_integer() || negative
        || x->get<std::uint64_t>() > std::numeric_limits<Unsigned>::max())
      complain(key, "a whole number in range");
    else
      out = static_cast<Unsigned>(x->get<std::uint64_t>());
    return *this;
  }

  template <class Rep, class Period>
  member_reader& get(std::string_view key, std::chrono::duration<Rep, Period>& out) {
    std::uint64_t count = 0;
    if (find(key) == nullptr || !get(key, count).fits<Rep>(key, count))
      return *this;
    out = std::chrono::duration<Rep, Period>{static_cast<Rep>(count)};
    return *this;
  }

  /// One word of an enum whose values count from 0 to `last`.
  template <class Enum>
  member_reader& get_word(std::string_view key, Enum& out, Enum last) {
    std::string word;
    get(key, word);
    if (find(key) == nullptr || bad_)
      return *this;
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      if (to_string(static_cast<Enum>(i)) == word) {
        out = static_cast<Enum>(i);
        return *this;
      }
    }
    complain(key, "a known word");
    return *this;
  }

  /// A nested value, read by `read(const json&)`.
  template <class T, class Read>
  member_reader& nested(std::string_view key, T& out, Read read) {
    if (auto* x = find(key); x != nullptr && !bad_) {
      result<T> inner = read(*x);
      if (inner)
        out = *std::move(inner);
      else
        bad_ = inner.error();
    }
    return *this;
  }

  template <class T, class Read>
  member_reader& list(std::string_view key, std::vector<T>& out, Read read) {
    auto* x = find(key);
    if (x != nullptr && !x->is_array())
      complain(key, "an array");
    for (std::size_t i = 0; x != nullptr && x->is_array() && i < x->size() && !bad_; ++i) {
      result<T> item = read((*x)[i]);
      if (item)
        out.push_back(*std::move(item));
      else
        bad_ = item.error();
    }
    return *this;
  }

  template <class T>
  [[nodiscard]] result<T> done(T x) {
    if (bad_)
      return fail(*bad_);
    return x;
  }

private:
  template <class Rep>
  bool fits(std::string_view key, std::uint64_t count) {
    if (count > static_cast<std::uint64_t>(std::numeric_limits<Rep>::max()))
      complain(key, "a whole number in range");
    return !bad_;
  }

  void complain(std::string_view key, std::string_view expected) {
    if (!bad_)
      bad_ = error{errc::corrupt, where_ + (key.empty() ? "" : "." + std::string{key}) + " is not "
                                    + std::string{expected}};
  }

  const json& object_;
  std::string where_;
  std::optional<error> bad_;
};

}  // namespace troupe
