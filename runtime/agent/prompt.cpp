#include "runtime/agent/prompt.hpp"

#include "runtime/agent/template_check.hpp"
#include "runtime/agent/tool_stub.hpp"
#include "runtime/core/text.hpp"

#include <minja/minja.hpp>

#include <algorithm>
#include <cctype>
#include <exception>

namespace troupe {
namespace {

/// The engine matches with recursive regular expressions; longer templates could end its stack.
constexpr std::size_t max_template_bytes = 64u << 10;

/// The outermost scope: a name that nobody defined is an error instead of an empty text.
class strict_context : public minja::Context {
public:
  strict_context(minja::Value&& values, const std::set<std::string, std::less<>>& guarded)
    : Context{std::move(values), builtins()}, guarded_{guarded} {}

  bool contains(const minja::Value& key) override {
    if (Context::contains(key))
      return true;
    auto name = key.is_string() ? key.get<std::string>() : key.dump();
    if (!guarded_.contains(name) && name != "caller")
      throw std::runtime_error("'" + name + "' is not defined here");
    return false;
  }

private:
  const std::set<std::string, std::less<>>& guarded_;
};

minja::Value values_of(const std::shared_ptr<minja::Context>&, minja::ArgumentsValue& call) {
  call.expectArgs("values", {1, 1}, {0, 0});
  auto& object = call.args[0];
  if (!object.is_object())
    return object;
  auto out = minja::Value::array();
  for (auto& key : object.keys())
    out.push_back(object.at(key));
  return out;
}

/// A function without arguments, as templates call it.
minja::Value text_function(std::string text) {
  return minja::Value::callable(
    [text = std::move(text)](const std::shared_ptr<minja::Context>&, minja::ArgumentsValue&) {
      return minja::Value{text};
    });
}

minja::Value tool_value(const tool_spec& tool) {
  auto properties =
    tool.parameters.is_object() ? tool.parameters.find("properties") : tool.parameters.end();
  auto out = minja::Value::object();
  out.set("name", tool.name);
  out.set("description", tool.description);
  out.set("inputs", properties == tool.parameters.end() ? ordered_json::object() : *properties);
  out.set("output_type", tool.output_type);
  out.set("to_code_prompt", text_function(tool_stub(tool)));
  out.set("to_tool_calling_prompt", text_function(tool_summary(tool)));
  return out;
}

/// The engine takes an empty object for true; Python, and an empty array, do not.
minja::Value by_name(const std::vector<tool_spec>& tools) {
  if (tools.empty())
    return minja::Value::array();
  auto out = minja::Value::object();
  for (auto& tool : tools)
    out.set(tool.name, tool_value(tool));
  return out;
}

minja::Value context_values(const prompt_variables& variables) {
  auto out = minja::Value::object();
  out.set("tools", by_name(variables.tools));
  out.set("managed_agents", by_name(variables.managed));
  out.set("values", minja::Value::callable(values_of));
  for (auto& [name, text] : variables.texts)
    out.set(name, text);
  return out;
}

std::set<std::string, std::less<>> engine_functions() {
  std::set<std::string, std::less<>> names{"values"};
  for (auto& key : minja::Context::builtins()->keys())
    names.insert(key.get<std::string>());
  return names;
}

/// "what, line 3, column 5: reason" from the engine's "reason at row 3, column 5:\n..." texts.
error located(const std::string& what, std::string_view engine_text) {
  constexpr std::string_view mark = " at row ";
  auto reason = engine_text.substr(0, engine_text.find('\n'));
  auto place = reason.find(mark);
  if (place == std::string_view::npos)
    return {errc::invalid_argument, what + ": " + std::string{reason}};
  auto where = reason.substr(place + mark.size());
  where.remove_suffix(where.ends_with(':') ? 1 : 0);
  return {errc::invalid_argument,
          what + ", line " + std::string{where} + ": " + std::string{reason.substr(0, place)}};
}

}  // namespace

struct prompt_template::parsed {
  std::string name;
  checked_template checked;
  std::shared_ptr<minja::TemplateNode> root;
};

result<prompt_template> prompt_template::parse(std::string name, std::string_view source,
                                               std::vector<std::string> variables) {
  if (source.size() > max_template_bytes)
    return fail(errc::invalid_argument, name + ": " + std::to_string(source.size())
                                          + " bytes, more than the "
                                          + std::to_string(max_template_bytes) + " allowed");
  static const auto functions = engine_functions();
  auto checked = check_template(source, {{variables.begin(), variables.end()}, functions});
  if (!checked)
    return fail(errc::invalid_argument, name + ", " + checked.error().detail);
  try {
    auto root = minja::Parser::parse(checked->source, minja::Options{false, false, false});
    return prompt_template{
      std::make_shared<parsed>(parsed{std::move(name), *std::move(checked), std::move(root)})};
  } catch (const std::exception& e) {
    return fail(located(name, e.what()));
  }
}

result<std::string> prompt_template::render(const prompt_variables& variables) const {
  try {
    auto scope =
      std::make_shared<strict_context>(context_values(variables), parsed_->checked.guarded);
    return parsed_->root->render(scope);
  } catch (const std::exception& e) {
    return fail(located(parsed_->name, e.what()));
  }
}

bool prompt_template::uses(std::string_view variable) const {
  return parsed_->checked.used.contains(variable);
}

std::vector<std::string> system_variables() {
  return {"tools",
          "managed_agents",
          "custom_instructions",
          "authorized_imports",
          "code_block_opening_tag",
          "code_block_closing_tag",
          "tool_protocol",
          "answer_schema",
          "task"};
}

std::string imports_text(const std::vector<std::string>& imports) {
  if (imports.empty() || std::find(imports.begin(), imports.end(), "*") != imports.end())
    return "any installed package";
  return python_literal(ordered_json(imports));
}

}  // namespace troupe
