#include "runtime/cli/live_view.hpp"

#include "runtime/eval/printable.hpp"

#include <string_view>

namespace troupe::cli {
namespace {

class painter {
public:
  explicit painter(bool colour) : colour_{colour} {}

  [[nodiscard]] std::string heading(std::string_view text, std::string_view code) const {
    std::string line{text};
    return colour_ ? "\033[" + std::string{code} + "m" + line + "\033[0m\n" : line + "\n";
  }

  [[nodiscard]] static std::string block(std::string_view text) {
    std::string out = "  ";
    for (char c : printable(text)) {
      out += c;
      if (c == '\n')
        out += "  ";
    }
    while (out.ends_with(' ') || out.ends_with('\n'))
      out.pop_back();
    return out + "\n";
  }

private:
  bool colour_;
};

}  // namespace

std::string show_event(const run_event& e, bool colour) {
  painter p{colour};
  if (e.kind == "action")
    return p.heading("step " + std::to_string(e.payload.value("step", 0)) + ": code", "1;34")
           + painter::block(string_or(e.payload, "code"));
  if (e.kind == "observation") {
    auto bad = e.payload.value("is_error", false);
    return p.heading(bad ? "error" : "observation", bad ? "1;31" : "1;32")
           + painter::block(string_or(e.payload, "text"));
  }
  if (e.kind == "tool_requested")
    return p.heading("tool " + printable(string_or(e.payload, "tool")) + " "
                       + printable(dump_json(e.payload.value("arguments", json::object()))),
                     "35");
  if (e.kind == "model_failed")
    return p.heading("model call failed", "1;31");
  return {};
}

}  // namespace troupe::cli
