#include "runtime/agent/managed_agent.hpp"

namespace troupe {
namespace {

errc code_of(run_end end) {
  switch (end) {
  case run_end::cancelled:
    return errc::cancelled;
  case run_end::deadline:
    return errc::timeout;
  case run_end::budget:
    return errc::over_budget;
  case run_end::success:
  case run_end::max_steps:
  case run_end::stuck:
  case run_end::error:
    break;
  }
  return errc::unavailable;
}

}  // namespace

tool_spec managed_agent_tool(const agent_options& agent) {
  tool_spec tool;
  tool.name = agent.name;
  tool.description = agent.description;
  tool.parameters = {
    {"type", "object"},
    {"properties",
     {{"task",
       {{"type", "string"},
        {"description", "What is to be done, with all that it takes to do it: the agent "
                        "knows nothing of what was said before."}}},
      {"additional_args",
       {{"type", "object"}, {"description", "Further values for the task, by name."}}}}},
    {"required", {"task"}}};
  tool.output_type = "string";
  tool.own_time = true;
  return tool;
}

std::string managed_task(const agent_definition& child, const json& arguments) {
  auto task = child.task_for(arguments.value("task", ""));
  auto more = arguments.find("additional_args");
  if (more != arguments.end() && more->is_object() && !more->empty())
    task += "\n\nValues given with the task, as JSON:\n" + dump_json(*more);
  return task;
}

result<json> managed_outcome(const agent_definition& child, const finish& end) {
  const auto& name = child.options.name;
  if (!end.answer)
    return fail(code_of(end.end), "the agent '" + name + "' ended as "
                                    + std::string{to_string(end.end)} + ": " + end.error);
  auto answer = to_plain(end.answer->tagged);
  if (!answer.is_string() && end.end == run_end::success)
    return answer;
  auto text = answer.is_string() ? answer.get<std::string>() : end.answer->text;
  auto report = child.report_of(text);
  if (end.end != run_end::success)
    report = "The agent '" + name + "' ended as " + std::string{to_string(end.end)} + " ("
             + end.error + "). What follows is the answer that it was made to give then.\n"
             + report;
  return report;
}

}  // namespace troupe
