#include "runtime/model/request_writer.hpp"

#include <algorithm>

namespace troupe {

member_writer::member_writer(std::string& out, const json& extra,
                             std::initializer_list<std::string_view> reserved)
  : out_{out}, extra_{extra}, reserved_{reserved} {}

bool member_writer::begin(std::string_view name) {
  if (extra_.is_object() && extra_.contains(name) && !is_reserved(name))
    return false;
  this->name(name);
  return true;
}

void member_writer::extras() {
  if (!extra_.is_object())
    return;
  for (auto& [key, value] : extra_.items()) {
    if (value.is_null() || is_reserved(key))
      continue;
    name(key);
    out_ += dump_json(value);
  }
}

void member_writer::name(std::string_view name) {
  out_ += first_ ? '{' : ',';
  first_ = false;
  append_json_string(out_, name);
  out_ += ':';
}

bool member_writer::is_reserved(std::string_view name) const {
  return std::find(reserved_.begin(), reserved_.end(), name) != reserved_.end();
}

void append_strings(std::string& out, const std::vector<std::string>& strings) {
  append_array(out, strings, [](std::string& to, auto& s) { append_json_string(to, s); });
}

void append_schema(std::string& out, const ordered_json& schema) {
  out +=
    schema.is_null() ? "{}" : schema.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void append_members_of(std::string& out, std::string_view object) {
  if (object.size() <= 2)
    return;
  out += ',';
  out += object.substr(1, object.size() - 2);
}

}  // namespace troupe
