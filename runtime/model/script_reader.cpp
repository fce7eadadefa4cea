#include "runtime/model/script_reader.hpp"

#include "runtime/core/text.hpp"

#include <algorithm>

namespace troupe {

script_reader::script_reader(const json& object, std::string place,
                             std::vector<std::string_view> known)
  : object_{object}, place_{std::move(place)} {
  if (!object_.is_object()) {
    set_error(place_.empty() ? "the script" : place_, "expected an object");
    return;
  }
  for (auto& [name, value] : object_.items())
    if (std::find(known.begin(), known.end(), name) == known.end())
      set_error(at(name), "unknown key" + did_you_mean(name, known));
}

std::string script_reader::at(std::string_view name) const {
  return (place_.empty() ? "" : place_ + ".") + std::string{name};
}

const json* script_reader::find(std::string_view name) const {
  if (error_ || !object_.is_object())
    return nullptr;
  auto it = object_.find(name);
  return it == object_.end() ? nullptr : &*it;
}

std::optional<std::string> script_reader::text(std::string_view name) {
  auto* value = find(name);
  if (!value)
    return std::nullopt;
  if (!value->is_string())
    set_error(at(name), "expected a string");
  return value->is_string() ? std::optional{value->get<std::string>()} : std::nullopt;
}

std::optional<bool> script_reader::boolean(std::string_view name) {
  auto* value = find(name);
  if (!value)
    return std::nullopt;
  if (!value->is_boolean())
    set_error(at(name), "expected true or false");
  return value->is_boolean() ? std::optional{value->get<bool>()} : std::nullopt;
}

std::optional<double> script_reader::number(std::string_view name, double least, double most) {
  auto* value = find(name);
  if (!value)
    return std::nullopt;
  if (value->is_number() && value->get<double>() >= least && value->get<double>() <= most)
    return value->get<double>();
  set_error(at(name), "expected a number from " + dump_json(least) + " to " + dump_json(most));
  return std::nullopt;
}

std::optional<std::uint64_t> script_reader::count(std::string_view name) {
  auto* value = find(name);
  if (!value)
    return std::nullopt;
  if (value->is_number_unsigned())
    return value->get<std::uint64_t>();
  set_error(at(name), "expected a whole number, 0 or more");
  return std::nullopt;
}

std::optional<millis> script_reader::span(std::string_view name) {
  constexpr double day = 86'400'000;
  auto ms = number(name, 0, day);
  return ms ? std::optional{millis{static_cast<millis::rep>(*ms)}} : std::nullopt;
}

void script_reader::require(std::string_view name) {
  if (object_.is_object() && !object_.contains(name))
    set_error(at(name), "is missing");
}

void script_reader::each(std::string_view name, std::string_view of_what, const read_fn& read) {
  auto* list = find(name);
  if (!list)
    return;
  if (!list->is_array()) {
    set_error(at(name), "expected an array of " + std::string{of_what});
    return;
  }
  for (std::size_t i = 0; i < list->size() && !error_; ++i)
    set_error(read((*list)[i], at(name) + "[" + std::to_string(i) + "]"));
}

void script_reader::set_error(const std::string& place, std::string_view what) {
  if (!error_)
    error_ = error{errc::invalid_argument, "mock script, " + place + ": " + std::string{what}};
}

void script_reader::set_error(std::optional<error> e) {
  if (!error_)
    error_ = std::move(e);
}

}  // namespace troupe
