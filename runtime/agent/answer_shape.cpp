#include "runtime/agent/answer_shape.hpp"

#include "runtime/agent/loose_json.hpp"
#include "runtime/agent/observation.hpp"
#include "runtime/core/text.hpp"
#include "runtime/model/schema_fit.hpp"
#include "runtime/model/tool_schema.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

constexpr std::size_t shown_schema_bytes = 2'000;
constexpr std::string_view wrapper = "answer";

bool is_object_schema(const ordered_json& schema) {
  auto type = schema.find("type");
  return schema.is_object() && type != schema.end() && *type == "object";
}

/// True where each object names all its members and needs them all, which OpenAI's strict mode asks
/// for. Source  OpenAI guide, "Structured model outputs", supported schemas.
bool is_strict(const ordered_json& schema) {
  if (!schema.is_object())
    return true;
  auto strict = true;
  for_each_child_schema(schema, [&](auto& child) { strict = strict && is_strict(child); });
  if (!strict || !is_object_schema(schema))
    return strict;
  auto properties = schema.value("properties", ordered_json::object());
  auto needed = schema.value("required", ordered_json::array());
  return schema.value("additionalProperties", ordered_json(true)) == false
         && needed.size() == properties.size();
}

/// True when all references lead into definitions, which can be moved.
bool refers_to_definitions_only(const ordered_json& schema) {
  if (!schema.is_structured())
    return true;
  for (auto& [key, child] : schema.items()) {
    if (key == "$ref" && child.is_string()) {
      auto& to = child.get_ref<const std::string&>();
      if (!to.starts_with("#/$defs/") && !to.starts_with("#/definitions/"))
        return false;
    } else if (!refers_to_definitions_only(child)) {
      return false;
    }
  }
  return true;
}

/// Puts the schema in the place of the parameter, and its definitions where references find them.
void nest(const ordered_json& schema, ordered_json& parameters, const std::string& name) {
  auto property = schema;
  for (auto* definitions : {"$defs", "definitions"})
    if (auto found = schema.find(definitions); found != schema.end()) {
      parameters[definitions] = *found;
      property.erase(definitions);
    }
  auto& place = parameters["properties"][name];
  if (place.is_object() && place.contains("description") && !property.contains("description"))
    property["description"] = place["description"];
  place = std::move(property);
}

}  // namespace

// In braces a JSON value would become an array of itself.
answer_shape::answer_shape(const ordered_json& schema, compiled_schema compiled)
  : schema_(schema), defaults_(schema), accepted_(with_defaults_optional(defaults_)),
    text_{schema.dump(-1, ' ', false, ordered_json::error_handler_t::replace)},
    compiled_{std::move(compiled)} {}

result<answer_shape> answer_shape::make(const ordered_json& schema) {
  if (!schema.is_object())
    return fail(errc::invalid_argument, "answer_schema: not a JSON object");
  auto compiled = compiled_schema::compile(with_defaults_optional(json(schema)));
  if (!compiled)
    return fail(errc::invalid_argument, "answer_schema: " + compiled.error().detail);
  return answer_shape{schema, *std::move(compiled)};
}

result<void> answer_shape::fit(value& answer) const {
  auto plain = to_plain(answer.tagged);
  coerce(accepted_, plain);
  if (auto ok = compiled_.check(plain); !ok)
    return fail(errc::invalid_argument, "it does not have the form that is asked for:\n"
                                          + ok.error().detail + "\nIts JSON Schema is "
                                          + cut_middle(text_, shown_schema_bytes));
  fill_defaults(defaults_, plain);
  answer.text = plain_text(plain);
  answer.tagged = to_tagged(plain);
  return {};
}

value answer_shape::read(std::string_view text) const {
  auto as_value = [](const json& plain) { return value{to_tagged(plain), plain_text(plain)}; };
  auto fits = [this](value answer) { return fit(answer).has_value(); };
  auto whole = as_value(std::string{trim(text)});
  auto found = json_in(text);
  if (!found)
    return whole;
  auto is_wrapped = !is_object_schema(schema_) && found->is_object() && found->size() == 1
                    && found->begin().key() == wrapper;
  auto within = as_value(is_wrapped ? json(found->begin().value()) : *found);
  return !fits(within) && fits(whole) ? whole : within;
}

output_schema answer_shape::output() const {
  if (is_object_schema(schema_))
    return {"answer", schema_, is_strict(schema_)};
  ordered_json wrapped{{"type", "object"},
                       {"properties", {{wrapper, ordered_json::object()}}},
                       {"required", {wrapper}},
                       {"additionalProperties", false}};
  if (!refers_to_definitions_only(schema_))
    return {"answer", std::move(wrapped), false};
  nest(schema_, wrapped, std::string{wrapper});
  return {"answer", wrapped, is_strict(wrapped)};
}

void answer_shape::tell(tool_spec& answer_tool) const {
  answer_tool.description += "\nThe answer must have the form of this JSON Schema: " + text_;
  auto& parameters = answer_tool.parameters;
  if (!parameters.is_object() || !parameters.contains("properties")
      || parameters["properties"].size() != 1 || !refers_to_definitions_only(schema_))
    return;
  auto name = parameters["properties"].begin().key();
  nest(schema_, parameters, name);
}

}  // namespace troupe
