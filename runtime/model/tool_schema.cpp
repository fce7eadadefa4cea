#include "runtime/model/tool_schema.hpp"

namespace troupe {
namespace {

void make_plain(ordered_json& schema) {
  if (!schema.is_object())
    return;
  for_each_child_schema(schema, make_plain);
  if (auto type = schema.find("type"); type != schema.end() && *type == "any")
    schema.erase("type");
  auto nullable = schema.find("nullable");
  if (nullable == schema.end() || !nullable->is_boolean())
    return;
  auto may = nullable->get<bool>();
  schema.erase("nullable");
  if (may)
    allow_null(schema);
}

}  // namespace

ordered_json plain_parameters(const ordered_json& parameters) {
  auto out = parameters.is_null() ? ordered_json::object() : parameters;
  if (!out.is_object())
    return out;
  if (!out.contains("type"))
    out["type"] = "object";
  if (!out.contains("properties"))
    out["properties"] = ordered_json::object();
  make_plain(out);
  return out;
}

}  // namespace troupe
