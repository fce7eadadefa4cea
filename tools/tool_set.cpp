#include "runtime/agent/python_name.hpp"
#include "runtime/core/text.hpp"
#include "runtime/model/schema.hpp"
#include "runtime/model/schema_fit.hpp"
#include "runtime/model/tool_schema.hpp"
#include "tools/tool.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace troupe {

struct tool_set::entry {
  tool definition;
  json parameters;  ///< as the author means them
  json accepted;    ///< the schema that calls are checked against
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

/// The parameters in JSON Schema's words; they take no other names unless they say so.
result<json> plain_schema(const tool_spec& spec) {
  auto bad = [&](std::string_view why) {
    return fail(errc::invalid_argument, "tool '" + spec.name + "': parameters " + std::string{why});
  };
  json schema(plain_parameters(spec.parameters));
  if (!schema.is_object() || schema["type"] != "object")
    return bad("must be a JSON schema of type object");
  auto& properties = schema["properties"];
  if (!properties.is_object())
    return bad("must have an object of properties");
  for (auto& [name, _] : properties.items())
    if (!is_python_identifier(name) || is_python_keyword(name))
      return bad("have '" + name + "', which is no Python identifier");
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

/// The parameter that a lone value is for: the only one, or the only one that is required.
std::optional<std::string> lone_parameter(const json& schema) {
  auto& properties = schema["properties"];
  if (properties.size() == 1)
    return properties.begin().key();
  auto required = schema.value("required", json::array());
  if (required.size() == 1)
    return required[0].get<std::string>();
  return std::nullopt;
}

/// Arguments as an object: none for null, and one lone value where it is clear what it is.
result<json> named_arguments(const tool_spec& spec, const json& schema, const json& arguments) {
  if (arguments.is_null())
    return json::object();
  if (arguments.is_object())
    return arguments;
  if (auto name = lone_parameter(schema))
    return json{{*name, arguments}};
  return fail(errc::invalid_argument, spec.name + ": the arguments are "
                                        + std::string{json_type_name(arguments)}
                                        + " but must be an object of names and values\nThe call is "
                                        + parameter_list(spec));
}

}  // namespace

result<void> tool_set::add(tool t) {
  if (auto ok = check_name(t.spec); !ok)
    return ok;
  if (find(t.spec.name) != nullptr)
    return fail(errc::invalid_argument, "tool '" + t.spec.name + "': another tool has this name");
  if (!t.call)
    return fail(errc::invalid_argument, "tool '" + t.spec.name + "': has no function to call");
  auto schema = plain_schema(t.spec);
  if (!schema)
    return fail(schema.error());
  auto accepted = with_defaults_optional(*schema);
  auto compiled = compiled_schema::compile(accepted);
  if (!compiled)
    return fail(errc::invalid_argument,
                "tool '" + t.spec.name + "': parameters are " + compiled.error().detail);
  tools_.push_back(std::make_shared<const entry>(
    entry{std::move(t), *std::move(schema), std::move(accepted), *std::move(compiled)}));
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
  auto& spec = e.definition.spec;
  auto filled = named_arguments(spec, e.parameters, arguments);
  if (!filled)
    return fail(filled.error());
  if (auto wrong = wrong_names(spec, e.accepted, *filled); !wrong.empty())
    return fail(errc::invalid_argument, std::string{name} + ": wrong arguments" + wrong);
  coerce(e.accepted, *filled);
  if (auto ok = e.schema.check(*filled); !ok)
    return fail(errc::invalid_argument, std::string{name} + ": " + ok.error().detail);
  fill_defaults(e.parameters, *filled);
  try {
    return e.definition.call(*filled, context);
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
