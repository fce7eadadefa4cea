// Tools in C++ that an agent's Python calls from inside its sandbox: typed, with state of ours, by
// JSON; and a check of its answer.
// usage: 02_tools MODEL, e.g. openai/gpt-4.1-mini, or mock/mock.json beside this file
#include <troupe/runtime.hpp>

#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace {

/// What the tools share. They may be called on several threads at once.
struct warehouse {
  std::mutex mutex;
  std::map<std::string, int> stock{{"bolt", 120}, {"nut", 80}};
};

/// Types give the schema; an error is a Python exception for the agent's code.
troupe::native_tool stock_tool(warehouse& w) {
  return troupe::make_tool(
    "stock", "How many of an item there are.",
    {{"item", "its name"}, {"at_least", "fail when there are fewer"}},
    [&w](const std::string& item, std::optional<int> at_least) -> troupe::result<int> {
      std::lock_guard lock{w.mutex};
      auto found = w.stock.find(item);
      if (found == w.stock.end())
        return troupe::fail(troupe::errc::not_found, "there is no item '" + item + "'");
      if (at_least && found->second < *at_least)
        return troupe::fail(troupe::errc::denied,
                            "there are only " + std::to_string(found->second));
      return found->second;
    });
}

/// The same by hand: a schema of one's own, arguments and result as JSON.
troupe::native_tool order_tool(warehouse& w) {
  troupe::native_tool t;
  t.name = "order";
  t.description = "Orders items; returns the new stock of each.";
  t.parameters = troupe::ordered_json::parse(R"({"type": "object", "properties": {
    "items": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1},
              "description": "how many of which"}}, "required": ["items"]})");
  t.call = [&w](const troupe::json& arguments,
                const troupe::call_info&) -> troupe::result<troupe::json> {
    std::lock_guard lock{w.mutex};
    auto now = troupe::json::object();
    for (const auto& [item, count] : arguments.at("items").items())
      now[item] = w.stock[item] += count.get<int>();
    return now;
  };
  return t;
}

}  // namespace

int main(int argc, char** argv) {
  warehouse w;  // before the runtime: its tools may be called until that ends
  auto rt = troupe::runtime::start({.model = argc > 1 ? argv[1] : "mock/mock.json"});
  if (!rt)
    return std::fprintf(stderr, "%s\n", rt.error().detail.c_str()), 1;

  troupe::answer_check is_number{
    "number", [](const troupe::json& answer, const std::string&) -> troupe::result<void> {
      if (answer.is_number())
        return {};
      return troupe::fail(troupe::errc::invalid_argument, "answer with a number alone");
    }};
  auto agent = rt->define({.name = "storekeeper",
                           .tools = {stock_tool(w), order_tool(w)},
                           .instructions = "Order what is missing.",
                           .max_steps = 6,
                           .checks = {is_number}});
  if (!agent)
    return std::fprintf(stderr, "%s\n", agent.error().detail.c_str()), 1;

  auto show = [](const troupe::live_event& e) {
    if (e.kind == "tool_requested")
      std::printf("%llu. %s\n", static_cast<unsigned long long>(e.sequence),
                  e.payload.dump().c_str());
  };
  auto run = rt->submit(*agent, "See that there are 150 nuts. How many bolts and nuts are there?",
                        {.on_event = show});
  auto outcome = run.wait();
  rt->stop();  // now all events have been shown
  std::printf("%s after %u turns: %s; nuts: %d\n", outcome.end.c_str(), outcome.turns,
              outcome.answer.dump().c_str(), w.stock["nut"]);
  return outcome.ok() ? 0 : 1;
}
