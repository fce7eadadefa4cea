#pragma once
// A tool's parameters in the words of JSON Schema alone, and the shape of schemas.

#include "runtime/core/json.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {

/// The schema of an arguments object as every provider and validator takes it: smolagents' words
/// "nullable" and the type "any" are said in JSON Schema's, at any depth; nothing at all stands for
/// no parameters. What is no schema stays as it is, for a validator to complain about.
[[nodiscard]] ordered_json plain_parameters(const ordered_json& parameters);

/// Calls `fn` with each schema that stands directly in this one, whatever for.
template <class Json, class Fn>
void for_each_child_schema(Json& schema, Fn fn) {
  for (std::string_view name : {"properties", "patternProperties", "$defs", "definitions"})
    if (auto it = schema.find(name); it != schema.end() && it->is_object())
      for (auto& [_, child] : it->items())
        fn(child);
  for (std::string_view name :
       {"items", "additionalProperties", "prefixItems", "anyOf", "oneOf", "allOf", "not"}) {
    auto it = schema.find(name);
    if (it != schema.end() && it->is_array())
      for (auto& child : *it)
        fn(child);
    else if (it != schema.end())
      fn(*it);
  }
}

/// Lets a schema that is an object take null too.
template <class Json>
void allow_null(Json& schema) {
  for (std::string_view name : {"anyOf", "oneOf"})
    if (auto it = schema.find(name); it != schema.end() && it->is_array())
      it->push_back({{"type", "null"}});
  if (auto it = schema.find("enum"); it != schema.end() && it->is_array()
                                     && std::find(it->begin(), it->end(), nullptr) == it->end())
    it->push_back(nullptr);
  auto type = schema.find("type");
  if (type == schema.end())
    return;
  auto types = type->is_array() ? *type : Json::array({*type});
  if (std::find(types.begin(), types.end(), "null") == types.end())
    types.push_back("null");
  *type = std::move(types);
}

}  // namespace troupe
