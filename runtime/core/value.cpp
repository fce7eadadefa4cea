#include "runtime/core/value.hpp"

#include "runtime/core/text.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace troupe {
namespace {

constexpr std::string_view tag_key = "__type__";

bool is_integer_text(std::string_view s) {
  if (s.starts_with('-'))
    s.remove_prefix(1);
  return !s.empty() && std::ranges::all_of(s, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_base64(std::string_view s) {
  auto body = s.substr(0, std::min(s.find('='), s.size()));
  auto letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+'
           || c == '/';
  };
  return s.size() % 4 == 0 && s.size() - body.size() <= 2 && std::ranges::all_of(body, letter)
         && s.substr(body.size()).find_first_not_of('=') == std::string_view::npos;
}

/// Walks a tagged value, and remembers where it is for the error's text.
class checker {
public:
  explicit checker(unsigned max_depth) : max_depth_{max_depth} {}

  [[nodiscard]] bool check(const json& x, unsigned depth) {
    if (depth > max_depth_)
      return wrong("nested deeper than " + std::to_string(max_depth_) + " levels");
    if (x.is_array())
      return check_list(x, depth);
    if (!x.is_object())
      return !x.is_binary() && !x.is_discarded() ? true : wrong("not JSON");
    return x.contains(tag_key) ? check_tag(x, depth) : check_members(x, depth);
  }

  [[nodiscard]] error failure() const { return {errc::corrupt, "value" + path_ + ": " + what_}; }

private:
  bool wrong(std::string what) {
    what_ = std::move(what);
    return false;
  }

  bool step_into(const std::string& step, const json& x, unsigned depth) {
    auto before = path_.size();
    path_ += step;
    if (!check(x, depth))
      return false;
    path_.resize(before);
    return true;
  }

  bool check_list(const json& x, unsigned depth) {
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!step_into("[" + std::to_string(i) + "]", x[i], depth + 1))
        return false;
    return true;
  }

  bool check_members(const json& x, unsigned depth) {
    for (const auto& [key, member] : x.items())
      if (!step_into("." + std::string{utf8_prefix(key, 64)}, member, depth + 1))
        return false;
    return true;
  }

  bool check_tag(const json& x, unsigned depth) {
    const auto& tag = x.at(tag_key);
    if (!tag.is_string())
      return wrong("a type tag that is no string");
    const auto& type = tag.get_ref<const std::string&>();
    if (type == "complex")
      return has_members(x, type, {"real", "imag"}) && check_real(x["real"])
             && check_real(x["imag"]);
    if (type == "timedelta")
      return has_members(x, type, {"total_seconds"})
             && (x["total_seconds"].is_number() || wrong("timedelta without a number"));
    if (type == "ndarray")
      return has_members(x, type, {"data", "dtype"})
             && (x["dtype"].is_string() || wrong("dtype is no string")) && check(x["data"], depth);
    if (type == "dataclass")
      return check_dataclass(x, depth);
    return has_members(x, type, {"data"}) && check_data(type, x["data"], depth);
  }

  bool check_data(const std::string& type, const json& data, unsigned depth) {
    if (type == "tuple" || type == "set" || type == "frozenset")
      return (data.is_array() || wrong(type + " without a list")) && check_list(data, depth);
    if (type == "dict")
      return check_pairs(data, depth);
    if (type == "float")
      return is_one_of(data, {"nan", "inf", "-inf"}) || wrong("no such float");
    if (!data.is_string())
      return wrong(is_text_type(type) ? type + " without a string" : unknown(type));
    const auto& text = data.get_ref<const std::string&>();
    if (type == "bytes")
      return is_base64(text) || wrong("bytes that are not base64");
    if (type == "int")
      return is_integer_text(text) || wrong("an int that is no number");
    return is_text_type(type) || wrong(unknown(type));
  }

  bool check_pairs(const json& data, unsigned depth) {
    if (!data.is_array())
      return wrong("dict without a list of pairs");
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (!data[i].is_array() || data[i].size() != 2)
        return wrong("dict entry " + std::to_string(i) + " is no pair");
      auto at = "{" + std::to_string(i) + "}";
      if (!step_into(at + ".key", data[i][0], depth + 1) || !step_into(at, data[i][1], depth + 1))
        return false;
    }
    return true;
  }

  bool check_dataclass(const json& x, unsigned depth) {
    if (!has_members(x, "dataclass", {"class_name", "module", "data"}))
      return false;
    if (!x["class_name"].is_string() || !x["module"].is_string() || !x["data"].is_object())
      return wrong("dataclass of another shape");
    return check(x["data"], depth);
  }

  bool check_real(const json& x) {
    auto special = x.is_object() && x.size() == 2 && x.value(tag_key, json{}) == "float"
                   && is_one_of(x.value("data", json{}), {"nan", "inf", "-inf"});
    return x.is_number() || special || wrong("complex without numbers");
  }

  bool has_members(const json& x, const std::string& type,
                   std::initializer_list<const char*> names) {
    auto all = std::ranges::all_of(names, [&](auto* name) { return x.contains(name); });
    return (all && x.size() == names.size() + 1)
           || wrong(std::string{utf8_prefix(type, 64)} + " of another shape");
  }

  static bool is_one_of(const json& x, std::initializer_list<std::string_view> words) {
    return x.is_string()
           && std::ranges::find(words, x.get_ref<const std::string&>()) != words.end();
  }

  static bool is_text_type(std::string_view type) {
    static constexpr std::string_view types[] = {"bytes", "int",     "datetime", "date",
                                                 "time",  "Decimal", "Path"};
    return std::ranges::find(types, type) != std::end(types);
  }

  static std::string unknown(const std::string& type) {
    return "unknown type '" + std::string{utf8_prefix(type, 64)} + "'";
  }

  unsigned max_depth_;
  std::string path_;
  std::string what_;
};

std::string number_text(const json& x) {
  return x.is_object() ? string_or(x, "data") : dump_json(x);
}

/// Python's text of a complex number, e.g. "(1.0+2.0j)".
std::string complex_text(const json& x) {
  auto imag = number_text(x.at("imag"));
  return "(" + number_text(x.at("real")) + (imag.starts_with('-') ? "" : "+") + imag + "j)";
}

std::string key_text(const json& key) {
  if (key.is_null())
    return "None";
  if (key.is_boolean())
    return key.get<bool>() ? "True" : "False";
  auto plain = to_plain(key);
  return plain.is_string() ? plain.get<std::string>() : dump_json(plain);
}

json plain_pairs(const json& pairs) {
  auto out = json::object();
  for (const auto& pair : pairs)
    out[key_text(pair.at(0))] = to_plain(pair.at(1));
  return out;
}

json plain_members(const json& x) {
  auto out = json::object();
  for (const auto& [key, member] : x.items())
    out[key] = to_plain(member);
  return out;
}

json plain_list(const json& x) {
  auto out = json::array();
  for (const auto& item : x)
    out.push_back(to_plain(item));
  return out;
}

}  // namespace

result<void> check_tagged(const json& tagged, const value_limits& limits) {
  checker c{limits.max_depth};
  if (!c.check(tagged, 0))
    return fail(c.failure());
  return {};
}

json to_plain(const json& tagged) {
  if (tagged.is_array())
    return plain_list(tagged);
  if (!tagged.is_object())
    return tagged;
  if (!tagged.contains(tag_key))
    return plain_members(tagged);
  auto type = string_or(tagged, tag_key);
  if (type == "complex")
    return complex_text(tagged);
  if (type == "timedelta")
    return tagged.at("total_seconds");
  return type == "dict" ? plain_pairs(tagged.at("data")) : to_plain(tagged.at("data"));
}

json to_tagged(const json& plain) {
  if (plain.is_number_float() && !std::isfinite(plain.get<double>())) {
    auto x = plain.get<double>();
    return {{tag_key, "float"}, {"data", std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf"}};
  }
  if (plain.is_array()) {
    auto out = json::array();
    for (const auto& item : plain)
      out.push_back(to_tagged(item));
    return out;
  }
  if (!plain.is_object())
    return plain;
  auto escaped = plain.contains(tag_key);
  auto out = escaped ? json::array() : json::object();
  for (const auto& [key, member] : plain.items()) {
    if (escaped)
      out.push_back(json::array({key, to_tagged(member)}));
    else
      out[key] = to_tagged(member);
  }
  return escaped ? json{{tag_key, "dict"}, {"data", std::move(out)}} : out;
}

}  // namespace troupe
