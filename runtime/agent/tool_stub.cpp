#include "runtime/agent/tool_stub.hpp"

#include "runtime/core/text.hpp"
#include "runtime/model/tool_schema.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {
namespace {

std::string python_type_name(std::string_view word) {
  if (word == "string")
    return "str";
  if (word == "integer")
    return "int";
  if (word == "number")
    return "float";
  if (word == "boolean")
    return "bool";
  if (word == "array")
    return "list";
  if (word == "object")
    return "dict";
  if (word == "null")
    return "None";
  return "Any";
}

void add_type(std::string& types, const std::string& type) {
  if (!types.empty())
    types += " | ";
  types += type;
}

std::string literal_type(const ordered_json& choices) {
  std::string out = "Literal[";
  for (auto& choice : choices)
    out += (out.back() == '[' ? "" : ", ") + python_literal(choice);
  return out + "]";
}

std::string array_type(const ordered_json& schema);

std::string python_type(const ordered_json& schema) {
  if (!schema.is_object())
    return "Any";
  std::string types;
  auto type = schema.find("type");
  if (auto choices = schema.find("enum"); choices != schema.end() && choices->is_array())
    types = literal_type(*choices);
  else if (auto any_of = schema.find("anyOf"); any_of != schema.end() && any_of->is_array())
    for (auto& option : *any_of)
      add_type(types, python_type(option));
  else if (type != schema.end() && type->is_array())
    for (auto& option : *type)
      add_type(types, python_type_name(option.is_string() ? option.get<std::string>() : ""));
  else if (type != schema.end() && *type == "array")
    types = array_type(schema);
  else if (type != schema.end() && type->is_string())
    types = python_type_name(type->get<std::string>());
  auto nullable = schema.find("nullable");
  if (!types.empty() && nullable != schema.end() && *nullable == true)
    add_type(types, "None");
  return types.empty() ? "Any" : types;
}

std::string array_type(const ordered_json& schema) {
  auto items = schema.find("items");
  return items == schema.end() ? "list" : "list[" + python_type(*items) + "]";
}

bool is_required(const ordered_json& parameters, std::string_view name) {
  auto required = parameters.find("required");
  return required != parameters.end() && required->is_array()
         && std::find(required->begin(), required->end(), name) != required->end();
}

std::string parameter(const ordered_json& parameters, const std::string& name,
                      const ordered_json& schema) {
  auto out = name + ": " + python_type(schema);
  if (is_required(parameters, name))
    return out;
  if (schema.is_object() && schema.contains("default"))
    return out + " = " + python_literal(schema["default"]);
  return out.ends_with("None") || out.ends_with("Any") ? out + " = None" : out + " | None = None";
}

std::string indented(std::string_view text, std::string_view indent) {
  std::string out;
  for (auto c : text) {
    out += c;
    if (c == '\n')
      out += indent;
  }
  return out;
}

std::string description_of(const ordered_json& schema) {
  auto text = schema.is_object() ? schema.find("description") : schema.end();
  return text != schema.end() && text->is_string() ? text->get<std::string>() : std::string{};
}

std::string json_text(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string result_type(const tool_spec& tool) {
  return tool.output_schema.is_object() ? python_type(tool.output_schema)
                                        : python_type_name(tool.output_type);
}

}  // namespace

std::string python_literal(const ordered_json& value) {
  if (value.is_null())
    return "None";
  if (value.is_boolean())
    return value.get<bool>() ? "True" : "False";
  std::string out;
  if (value.is_array()) {
    for (auto& item : value)
      out += (out.empty() ? "" : ", ") + python_literal(item);
    return "[" + out + "]";
  }
  if (value.is_object()) {
    for (auto& [key, item] : value.items())
      out += (out.empty() ? "" : ", ") + python_literal(key) + ": " + python_literal(item);
    return "{" + out + "}";
  }
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string tool_stub(const tool_spec& tool) {
  std::string arguments, described;
  auto properties =
    tool.parameters.is_object() ? tool.parameters.find("properties") : tool.parameters.end();
  if (properties != tool.parameters.end() && properties->is_object()) {
    for (auto& [name, schema] : properties->items()) {
      arguments += (arguments.empty() ? "" : ", ") + parameter(tool.parameters, name, schema);
      auto text = description_of(schema);
      described += "\n        " + name + ": " + indented(trim(text), "            ");
    }
  }
  if (!described.empty())
    described = "\n\n    Args:" + described + "\n    ";
  if (tool.output_schema.is_object())
    described += (described.empty() ? "\n\n    " : "") + std::string{"Returns:\n        "}
                 + "a value of this JSON Schema, whose fields can be used directly: "
                 + json_text(tool.output_schema) + "\n    ";
  return "def " + tool.name + "(" + arguments + ") -> " + result_type(tool) + ":\n    \"\"\""
         + indented(trim(tool.description), "    ") + described + "\"\"\"";
}

std::string tool_summary(const tool_spec& tool) {
  auto out = tool.name + ": " + indented(trim(tool.description), "    ") + "\n    Arguments: "
             + json_text(plain_parameters(tool.parameters)) + "\n    Returns: " + tool.output_type;
  return tool.output_schema.is_object()
           ? out + ", of this JSON Schema: " + json_text(tool.output_schema)
           : out;
}

}  // namespace troupe
