#include "runtime/model/schema_fit.hpp"

#include "runtime/core/text.hpp"
#include "runtime/model/tool_schema.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {
namespace {

/// Schemas may refer to themselves; values are not deeper than this.
constexpr unsigned max_depth = 64;
constexpr double largest_exact = 9'007'199'254'740'992.0;  // 2^53

using type_names = std::vector<std::string_view>;

const json* member(const json& object, std::string_view key) {
  auto it = object.find(key);  // the end for what is no object
  return it == object.end() ? nullptr : &*it;
}

/// None for a schema that takes any type.
type_names types_of(const json& schema) {
  type_names out;
  auto* type = member(schema, "type");
  if (type != nullptr && type->is_string())
    out.push_back(type->get_ref<const std::string&>());
  if (type != nullptr && type->is_array())
    for (auto& name : *type)
      if (name.is_string())
        out.push_back(name.get_ref<const std::string&>());
  return out;
}

bool has_type(const json& value, std::string_view type) {
  if (type == "number")
    return value.is_number();
  if (type == "integer")
    return value.is_number_integer();
  if (type == "string")
    return value.is_string();
  if (type == "boolean")
    return value.is_boolean();
  if (type == "null")
    return value.is_null();
  return type == "array" ? value.is_array() : type == "object" && value.is_object();
}

bool accepts(const type_names& types, const json& value) {
  for (auto type : types)
    if (has_type(value, type))
      return true;
  return types.empty();
}

/// A whole number of more digits than fit would be read as a near one, and is none.
std::optional<json> number_in(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789+-.eE") != std::string_view::npos)
    return std::nullopt;
  auto parsed = parse_json(text);
  auto whole = text.find_first_of(".eE") == std::string_view::npos;
  if (!parsed || !parsed->is_number() || (whole && parsed->is_number_float()))
    return std::nullopt;
  return *parsed;
}

std::optional<json> as_integer(const json& number) {
  if (number.is_number_integer())
    return number;
  auto x = number.get<double>();
  if (std::floor(x) != x || std::abs(x) > largest_exact)
    return std::nullopt;
  return json(static_cast<std::int64_t>(x));
}

/// "3", and "3.0" but not "3.00000000000000000001", which a number would take for the same.
std::optional<json> integer_in(std::string_view text) {
  auto fraction = text.substr(std::min(text.find('.'), text.size()));
  if (fraction.find_first_not_of(".0") != std::string_view::npos
      || text.find_first_of("eE") != std::string_view::npos)
    return std::nullopt;
  auto number = number_in(text);
  return number ? as_integer(*number) : std::nullopt;
}

std::optional<json> boolean_in(std::string_view text) {
  if (text == "true" || text == "True")
    return json(true);
  if (text == "false" || text == "False")
    return json(false);
  return std::nullopt;
}

std::optional<json> structure_in(std::string_view text, std::string_view type) {
  auto parsed = text.starts_with(type == "object" ? '{' : '[') ? parse_json(text) : json{};
  return parsed && has_type(*parsed, type) ? std::optional{*parsed} : std::nullopt;
}

std::optional<json> converted(const json& value, std::string_view type) {
  if (type == "integer" && value.is_number_float())
    return as_integer(value);
  if (!value.is_string())
    return std::nullopt;
  auto text = trim(value.get_ref<const std::string&>());
  if (type == "integer")
    return integer_in(text);
  if (type == "number")
    return number_in(text);
  if (type == "boolean")
    return boolean_in(text);
  if (type == "null")
    return text == "null" || text == "None" ? std::optional{json{}} : std::nullopt;
  return type == "object" || type == "array" ? structure_in(text, type) : std::nullopt;
}

void coerce_one(const json& schema, json& value) {
  auto types = types_of(schema);
  if (accepts(types, value))
    return;
  for (auto type : types)
    if (auto made = converted(value, type)) {
      value = *std::move(made);
      return;
    }
}

bool accepts_null(const json& schema) {
  for (auto* word : {"anyOf", "oneOf"})
    if (auto* options = member(schema, word); options != nullptr && options->is_array()) {
      for (auto& option : *options)
        if (accepts(types_of(option), nullptr))
          return true;
      return false;
    }
  return accepts(types_of(schema), nullptr);
}

void fill_one(const json& schema, json& value) {
  auto* properties = member(schema, "properties");
  if (!value.is_object() || properties == nullptr || !properties->is_object())
    return;
  for (auto& [name, property] : properties->items()) {
    auto* fallback = member(property, "default");
    if (fallback == nullptr)
      continue;
    auto given = value.find(name);
    if (given == value.end() || (given->is_null() && !accepts_null(property)))
      value[name] = *fallback;
  }
}

/// Goes through a value and its schema side by side.
class schema_walk {
public:
  using visit_fn = void (*)(const json& schema, json& value);

  schema_walk(const json& root, visit_fn visit) : root_{root}, visit_{visit} {}

  void at(const json& schema, json& value, unsigned depth = 0) {
    auto* here = depth < max_depth ? referred(root_, schema) : nullptr;
    if (here == nullptr || !here->is_object())
      return;
    visit_(*here, value);
    if (auto* all = member(*here, "allOf"); all != nullptr && all->is_array())
      for (auto& one : *all)
        at(one, value, depth + 1);
    for (auto* word : {"anyOf", "oneOf"})
      if (auto* chosen = choose(member(*here, word), value); chosen != nullptr)
        at(*chosen, value, depth + 1);
    if (value.is_object())
      in_object(*here, value, depth + 1);
    else if (value.is_array())
      in_array(*here, value, depth + 1);
  }

private:
  void in_object(const json& schema, json& value, unsigned depth) {
    auto* properties = member(schema, "properties");
    auto* others = member(schema, "additionalProperties");
    for (auto& [name, child] : value.items()) {
      auto* property = properties == nullptr ? nullptr : member(*properties, name);
      if (property != nullptr || others != nullptr)
        at(property != nullptr ? *property : *others, child, depth);
    }
  }

  void in_array(const json& schema, json& value, unsigned depth) {
    auto* items = member(schema, "items");
    for (std::size_t i = 0; items != nullptr && i < value.size(); ++i)
      if (!items->is_array())
        at(*items, value[i], depth);
      else if (i < items->size())
        at((*items)[i], value[i], depth);
  }

  /// The alternative that the value is of. None where that is not plain.
  const json* choose(const json* options, json& value) {
    if (options == nullptr || !options->is_array())
      return nullptr;
    const json* found = nullptr;
    for (auto& option : *options)
      if (auto* target = referred(root_, option);
          target != nullptr && accepts(types_of(*target), value)) {
        if (found != nullptr)
          return nullptr;
        found = target;
      }
    return found != nullptr ? found : first_to_take(*options, value);
  }

  const json* first_to_take(const json& options, const json& value) {
    for (auto& option : options)
      if (auto* target = referred(root_, option); target != nullptr)
        for (auto type : types_of(*target))
          if (converted(value, type))
            return target;
    return nullptr;
  }

  const json& root_;
  visit_fn visit_;
};

void make_defaults_optional(json& schema) {
  if (!schema.is_object())
    return;
  for_each_child_schema(schema, make_defaults_optional);
  auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object())
    return;
  auto kept = json::array();
  for (auto& name : schema.value("required", json::array()))
    if (!name.is_string() || member(properties->value(name, json{}), "default") == nullptr)
      kept.push_back(name);
  if (schema.contains("required"))
    schema["required"] = kept;
  if (kept.empty())
    schema.erase("required");  // draft 4 has no empty one
  for (auto& [_, property] : properties->items())
    if (member(property, "default") != nullptr)
      allow_null(property);
}

}  // namespace

void coerce(const json& schema, json& value) {
  schema_walk{schema, coerce_one}.at(schema, value);
}

void fill_defaults(const json& schema, json& value) {
  schema_walk{schema, fill_one}.at(schema, value);
}

json with_defaults_optional(json schema) {
  make_defaults_optional(schema);
  return schema;
}

const json* reference_of(const json& root, const json& schema) {
  auto* reference = member(schema, "$ref");
  if (reference == nullptr || !reference->is_string())
    return nullptr;
  auto& text = reference->get_ref<const std::string&>();
  if (!text.starts_with('#'))
    return nullptr;
  try {
    return &root.at(json::json_pointer{text.substr(1)});
  } catch (const json::exception&) {
    return nullptr;
  }
}

const json* referred(const json& root, const json& schema) {
  constexpr unsigned longest_chain = 16;
  const json* out = &schema;
  for (unsigned i = 0; i < longest_chain; ++i) {
    if (member(*out, "$ref") == nullptr)
      return out;
    out = reference_of(root, *out);
    if (out == nullptr)
      return nullptr;
  }
  return nullptr;
}

}  // namespace troupe
