#include "runtime/agent/python_name.hpp"
#include "runtime/core/text.hpp"
#include "tools/schema.hpp"
#include "tools/tool.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace troupe {

struct tool_set::entry {
  tool definition;
  json parameters;  ///< the schema that calls are checked against
  compiled_schema schema;
};

namespace {

result<void> check_name(const tool_spec& spec) {
  auto bad = [&](std::string_view why) {
    return fail(errc::invalid_argument, "tool '" + spec.name + "': " + std::string{why});
  };
  if (!is_python_identifier(spec.name))
    return bad("its name must be a Python identifier of at most 64 letters, digits and '_'");
  if (is_python_keyword(spec.name))
    return bad("its name is a Python keyword");
  if (is_python_builtin(spec.name))
    return bad("its name is a Python builtin, which it would hide");
  return {};
}

/// smolagents' words in JSON Schema's: "nullable" and the type "any". A default stands for null
/// too (see with_defaults), but is no reason to refuse it.
json plain_schema(json schema) {
  if (!schema.is_object())
    return schema;
  auto nullable = schema.value("nullable", json{}) == true || schema.contains("default");
  if (schema.value("type", json{}) == "any") {
    schema.erase("type");
  } else if (nullable && schema.contains("type")) {
    auto types = schema["type"].is_array() ? schema["type"] : json::array({schema["type"]});
    if (std::find(types.begin(), types.end(), "null") == types.end())
      types.push_back("null");
    schema["type"] = std::move(types);
    if (schema.contains("enum") && schema["enum"].is_array())
      schema["enum"].push_back(nullptr);
  }
  return schema;
}

result<json> call_schema(const tool_spec& spec) {
  auto bad = [&](std::string_view why) {
    return fail(errc::invalid_argument, "tool '" + spec.name + "': parameters " + std::string{why});
  };
  json schema(spec.parameters);
  if (schema.is_null())
    schema = json::object();
  if (!schema.is_object() || schema.value("type", json("object")) != "object")
    return bad("must be a JSON schema of type object");
  schema["type"] = "object";
  auto& properties = schema["properties"];
  if (properties.is_null())
    properties = json::object();
  if (!properties.is_object())
    return bad("must have an object of properties");
  for (auto& [name, property] : properties.items()) {
    if (!is_python_identifier(name) || is_python_keyword(name))
      return bad("have '" + name + "', which is no Python identifier");
    property = plain_schema(std::move(property));
  }
  for (auto& name : schema.value("required", json::array()))
    if (!name.is_string() || !properties.contains(name.get_ref<const std::string&>()))
      return bad("require " + name.dump() + ", which is no property");
  if (!schema.contains("additionalProperties"))
    schema["additionalProperties"] = false;
  return schema;
}

/// The parameters in the order of a call, which only the spec has kept.
std::string parameter_list(const tool_spec& spec) {
  std::string out;
  if (spec.parameters.contains("properties"))
    for (auto& [name, _] : spec.parameters["properties"].items())
      out += (out.empty() ? "" : ", ") + name;
  return spec.name + "(" + out + ")";
}

/// Wrong names are the commonest mistake, and the schema library's words for them help nobody.
std::string wrong_names(const tool_spec& spec, const json& schema, const json& arguments) {
  auto& properties = schema["properties"];
  std::vector<std::string_view> names;
  for (auto it = properties.begin(); it != properties.end(); ++it)
    names.push_back(it.key());
  std::string out;
  for (auto& name : schema.value("required", json::array()))
    if (!arguments.contains(name.get_ref<const std::string&>()))
      out += "\nthe argument " + name.dump() + " is required and missing";
  if (schema["additionalProperties"] == false)
    for (auto& [name, _] : arguments.items())
      if (!properties.contains(name))
        out += "\nunknown argument '" + name + "'" + did_you_mean(name, names);
  return out.empty() ? out : out + "\nThe call is " + parameter_list(spec);
}

/// True when the tool's author made null a value of its own.
bool means_null(const ordered_json& property) {
  if (!property.contains("type"))
    return true;
  auto& type = property["type"];
  return type == "any" || type == "null" || property.value("nullable", ordered_json{}) == true
         || (type.is_array() && std::find(type.begin(), type.end(), "null") != type.end());
}

/// Fills in what was left out, or given as null where only the default explains it.
void with_defaults(const tool_spec& spec, json& arguments) {
  if (!spec.parameters.contains("properties"))
    return;
  for (auto& [name, property] : spec.parameters["properties"].items()) {
    if (!property.is_object() || !property.contains("default"))
      continue;
    if (!arguments.contains(name) || (arguments[name].is_null() && !means_null(property)))
      arguments[name] = json(property["default"]);
  }
}

}  // namespace

result<void> tool_set::add(tool t) {
  if (auto ok = check_name(t.spec); !ok)
    return ok;
  if (find(t.spec.name) != nullptr)
    return fail(errc::invalid_argument, "tool '" + t.spec.name + "': another tool has this name");
  if (!t.call)
    return fail(errc::invalid_argument, "tool '" + t.spec.name + "': has no function to call");
  auto schema = call_schema(t.spec);
  if (!schema)
    return fail(schema.error());
  auto compiled = compiled_schema::compile(*schema);
  if (!compiled)
    return fail(errc::invalid_argument,
                "tool '" + t.spec.name + "': parameters are " + compiled.error().detail);
  tools_.push_back(
    std::make_shared<const entry>(entry{std::move(t), *std::move(schema), *std::move(compiled)}));
  return {};
}

const tool* tool_set::find(std::string_view name) const {
  for (auto& e : tools_)
    if (e->definition.spec.name == name)
      return &e->definition;
  return nullptr;
}

std::vector<tool_spec> tool_set::specs() const {
  std::vector<tool_spec> out;
  for (auto& e : tools_)
    out.push_back(e->definition.spec);
  return out;
}

result<json> tool_set::call(std::string_view name, const json& arguments,
                            const tool_context& context) const {
  auto found = std::find_if(tools_.begin(), tools_.end(),
                            [&](auto& e) { return e->definition.spec.name == name; });
  if (found == tools_.end())
    return fail(unknown_tool(name));
  auto& e = **found;
  auto filled = arguments.is_null() ? json::object() : arguments;
  if (!filled.is_object())
    return fail(errc::invalid_argument, std::string{name} + ": the arguments are "
                                          + std::string{json_type_name(filled)}
                                          + " but must be an object of names and values");
  if (auto wrong = wrong_names(e.definition.spec, e.parameters, filled); !wrong.empty())
    return fail(errc::invalid_argument, std::string{name} + ": wrong arguments" + wrong);
  if (auto ok = e.schema.check(filled); !ok)
    return fail(errc::invalid_argument, std::string{name} + ": " + ok.error().detail);
  with_defaults(e.definition.spec, filled);
  try {
    return e.definition.call(filled, context);
  } catch (const std::exception& x) {
    return fail(errc::internal, std::string{name} + ": " + x.what());
  }
}

error tool_set::unknown_tool(std::string_view name) const {
  std::vector<std::string_view> names;
  std::string list;
  for (auto& e : tools_) {
    names.push_back(e->definition.spec.name);
    list += (list.empty() ? "" : ", ") + e->definition.spec.name;
  }
  return {errc::not_found, "there is no tool '" + std::string{name} + "'"
                             + did_you_mean(name, names)
                             + "; there is: " + (list.empty() ? "none" : list)};
}

}  // namespace troupe
