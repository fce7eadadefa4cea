#include "runtime/policy/hooks.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe {
namespace {

bool concerns(const approval_settings& settings, const hook_event& e) {
  auto what = e.at == hook_point::before_code ? std::string{"code"} : e.what.value("tool", "");
  return std::ranges::any_of(settings.what, [&](auto& w) { return w == "*" || w == what; });
}

}  // namespace

std::string_view to_string(hook_point at) noexcept {
  static constexpr std::array<std::string_view, 9> names{
    "before_step", "before_model", "after_model", "before_tool", "after_tool",
    "before_code", "after_code",   "after_step",  "run_ended"};
  return names[static_cast<std::size_t>(at)];
}

run_hook make_hook(std::string name, std::vector<hook_point> points,
                   std::function<hook_verdict(const hook_event&)> fn) {
  return {std::move(name), std::move(points),
          [fn = std::move(fn)](const hook_event& e, const hook_reply& reply) { reply(fn(e)); }};
}

result<void> validate(const std::vector<run_hook>& hooks) {
  for (auto& hook : hooks) {
    if (hook.name.empty() || !hook.call || hook.points.empty())
      return fail(errc::invalid_argument, "hook '" + hook.name
                                            + "': it needs a name, a function and the points at "
                                              "which it is called");
    if (std::ranges::count(hooks, hook.name, &run_hook::name) > 1)
      return fail(errc::invalid_argument, "hook '" + hook.name + "': there are two of that name");
  }
  return {};
}

run_hook approval_hook(approval_settings settings, approver ask) {
  auto call = [settings = std::move(settings), ask = std::move(ask)](const hook_event& e,
                                                                     const hook_reply& reply) {
    if (settings.how == approval::automatic || !concerns(settings, e))
      return reply(hook_verdict::go_on());
    if (settings.how == approval::deny || !ask)
      return reply(hook_verdict::veto("this may not be done in this run"));
    ask(e, [reply](bool yes, const std::string& why) {
      reply(yes ? hook_verdict::go_on()
                : hook_verdict::veto(why.empty() ? "the user did not allow it"
                                                 : "the user did not allow it: " + why));
    });
  };
  return {"approval", {hook_point::before_tool, hook_point::before_code}, std::move(call), true};
}

}  // namespace troupe
