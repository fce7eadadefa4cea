// Valijson stays in this file: it is dear to compile. VALIJSON_USE_EXCEPTIONS is set by CMake,
// because without it the library ends the process where it could throw.
#include "runtime/model/schema.hpp"

#include "runtime/core/text.hpp"
#include "runtime/model/schema_fit.hpp"

#include <boost/regex.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <vector>

namespace troupe {
namespace {

constexpr std::size_t max_violations = 8;
constexpr std::size_t shown_bytes = 60;

/// A model writes the text, and some patterns take time without end on the wrong one. Boost's
/// engine counts its steps and gives up with an exception; std::regex also recurses per character.
class bounded_regex {
public:
  static constexpr std::size_t max_text_bytes = 4096;

  explicit bounded_regex(const std::string& pattern) : regex_{pattern} {}

  static bool search(const std::string& text, const bounded_regex& pattern) {
    if (text.size() > max_text_bytes)
      throw std::runtime_error("a text with a pattern may have at most "
                               + std::to_string(max_text_bytes) + " bytes");
    return boost::regex_search(text, pattern.regex_);
  }

private:
  boost::regex regex_;
};

/// "[days]" after "<root>" and so on, as the library writes places, taken apart.
std::vector<std::string> steps_of(const std::vector<std::string>& context) {
  std::vector<std::string> steps;
  for (auto& part : context)
    if (part.size() >= 2 && part.front() == '[' && part.back() == ']')
      steps.push_back(part.substr(1, part.size() - 2));
  return steps;
}

const json* child(const json* value, const std::string& step) {
  if (value == nullptr)
    return nullptr;
  if (value->is_object()) {
    auto it = value->find(step);
    return it == value->end() ? nullptr : &*it;
  }
  if (!value->is_array() || step.empty() || step.size() > 9
      || step.find_first_not_of("0123456789") != std::string::npos)
    return nullptr;
  auto index = std::stoul(step);
  return index < value->size() ? &(*value)[index] : nullptr;
}

const json* schema_child(const json& root, const json* schema, const std::string& step) {
  if (schema == nullptr || !schema->is_object())
    return nullptr;
  auto* items = child(schema, "items");
  auto* found = items != nullptr && items->is_array() ? child(items, step) : items;
  if (auto properties = child(schema, "properties"); properties != nullptr)
    if (auto* property = child(properties, step); property != nullptr)
      found = property;
  return found == nullptr ? nullptr : referred(root, *found);
}

std::string place_of(const std::vector<std::string>& steps) {
  std::string place;
  for (auto& step : steps) {
    auto is_index = step.find_first_not_of("0123456789") == std::string::npos;
    place += is_index ? "[" + step + "]" : (place.empty() ? "" : ".") + step;
  }
  return place.empty() ? "the value" : "'" + place + "'";
}

std::string shown(const json& value) {
  auto text = dump_json(value);
  return text.size() <= shown_bytes ? text : std::string{utf8_prefix(text, shown_bytes)} + "...";
}

std::string types_of(const json& schema) {
  auto* type = child(&schema, "type");
  if (type == nullptr)
    return "of another type";
  if (type->is_string())
    return type->get<std::string>();
  std::string out;
  for (auto& option : *type)
    if (option.is_string())
      out += (out.empty() ? "" : " or ") + option.get<std::string>();
  return out;
}

/// One violation in words that tell what to change; the library's own where we know no better.
std::string describe(const std::vector<std::string>& steps, const std::string& description,
                     const json& schema, const json& value) {
  const json* there = &value;
  const json* wanted = referred(schema, schema);
  for (auto& step : steps) {
    there = child(there, step);
    wanted = schema_child(schema, wanted, step);
  }
  auto place = place_of(steps);
  auto known = there != nullptr && wanted != nullptr && wanted->is_object();
  auto is =
    known ? place + " is " + std::string{json_type_name(*there)} + " (" + shown(*there) + ")" : "";
  if (known && description.find("'type' constraint") != std::string::npos)
    return is + " but must be " + types_of(*wanted);
  if (known && description.find("enum values") != std::string::npos && wanted->contains("enum"))
    return is + " but must be one of " + dump_json((*wanted)["enum"]);
  return place + ": " + description;
}

/// Finds schemas that would keep the library, which recurses, going for ever: references that come
/// back to where they began without going into the value, or very many in a row.
class reference_check {
public:
  explicit reference_check(const json& root) : root_{root} {}

  /// True for such a schema, and for one that holds one.
  bool is_endless(const json& part) {
    if (part.is_object() && way_from(part, 0) >= endless)
      return true;
    return part.is_structured()
           && std::any_of(part.begin(), part.end(), [this](auto& x) { return is_endless(x); });
  }

private:
  static constexpr unsigned endless = 100;

  /// How many schemas at most judge one value one after the other, from this one on.
  unsigned way_from(const json& schema, unsigned depth) {
    if (depth >= endless)
      return endless;
    auto [known, fresh] = ways_.try_emplace(&schema, endless);  // until all after it are known
    if (!fresh)
      return known->second;
    unsigned longest = 0;
    for (auto* next : after(schema))
      longest = std::max(longest, way_from(*next, depth + 1));
    return ways_[&schema] = std::min(longest + 1, endless);
  }

  /// The schemas that judge the same value as this one.
  [[nodiscard]] std::vector<const json*> after(const json& schema) const {
    std::vector<const json*> out;
    if (auto* target = reference_of(root_, schema); target != nullptr)
      out.push_back(target);
    for (auto* word : {"not", "if", "then", "else"})
      if (auto* part = child(&schema, word); part != nullptr)
        out.push_back(part);
    for (auto* word : {"allOf", "anyOf", "oneOf"})
      if (auto* parts = child(&schema, word); parts != nullptr && parts->is_array())
        for (auto& part : *parts)
          out.push_back(&part);
    return out;
  }

  const json& root_;
  std::unordered_map<const json*, unsigned> ways_;
};

/// Tries all patterns: the library only looks at them once there is a value.
/// Errors  invalid_argument: which one, and what is wrong with it.
result<void> check_patterns(const json& schema) {
  auto tried = [](const std::string& pattern) -> result<void> {
    try {
      bounded_regex made{pattern};
      return {};
    } catch (const std::exception& e) {
      return fail(errc::invalid_argument, "not a usable JSON schema: the pattern '" + pattern
                                            + "' is no regular expression: " + e.what());
    }
  };
  if (!schema.is_structured())
    return {};
  for (auto& [key, part] : schema.items()) {
    if (key == "enum" || key == "const" || key == "default" || key == "examples")
      continue;
    auto ok =
      key == "pattern" && part.is_string() ? tried(part.get<std::string>()) : check_patterns(part);
    if (key == "patternProperties" && part.is_object())
      for (auto& [pattern, _] : part.items())
        if (ok)
          ok = tried(pattern);
    if (!ok)
      return ok;
  }
  return {};
}

/// The library reports each failure again for everything around it.
bool is_echo(const std::string& description) {
  return description.starts_with("Failed to validate against schema associated")
         || description.starts_with("Failed to validate item #");
}

}  // namespace

struct compiled_schema::impl {
  json source;
  valijson::Schema schema;
};

result<compiled_schema> compiled_schema::compile(const json& schema) {
  auto out = std::make_shared<impl>();
  out->source = schema;
  if (reference_check{out->source}.is_endless(out->source))
    return fail(errc::invalid_argument,
                "not a usable JSON schema: its references lead round in a circle");
  if (auto fine = check_patterns(out->source); !fine)
    return fail(fine.error());
  try {
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter{out->source}, out->schema);
  } catch (const std::exception& e) {
    return fail(errc::invalid_argument, std::string{"not a usable JSON schema: "} + e.what());
  }
  return compiled_schema{std::move(out)};
}

result<void> compiled_schema::check(const json& value) const {
  std::string violations;
  try {
    valijson::ValidatorT<bounded_regex> validator;
    valijson::ValidationResults found;
    valijson::adapters::NlohmannJsonAdapter target{value};
    if (validator.validate(impl_->schema, target, &found))
      return {};
    std::size_t count = 0;
    for (auto& violation : found)
      if (!is_echo(violation.description) && count++ < max_violations)
        violations +=
          (violations.empty() ? "" : "\n")
          + describe(steps_of(violation.context), violation.description, impl_->source, value);
    if (count > max_violations)
      violations += "\nand " + std::to_string(count - max_violations) + " more";
  } catch (const std::exception& e) {
    violations = e.what();
  }
  return fail(errc::invalid_argument, violations.empty() ? "does not fit its schema" : violations);
}

result<void> check_schema(const json& schema, const json& value) {
  return compiled_schema::compile(schema).and_then(
    [&](const compiled_schema& compiled) { return compiled.check(value); });
}

std::string_view json_type_name(const json& value) noexcept {
  switch (value.type()) {
  case json::value_t::null:
    return "null";
  case json::value_t::boolean:
    return "a boolean";
  case json::value_t::string:
    return "a string";
  case json::value_t::array:
    return "an array";
  case json::value_t::object:
    return "an object";
  case json::value_t::number_float:
    return "a number";
  case json::value_t::number_integer:
  case json::value_t::number_unsigned:
    return "an integer";
  default:
    return "nothing";
  }
}

}  // namespace troupe
