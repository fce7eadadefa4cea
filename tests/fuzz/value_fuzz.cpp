// A value from inside a sandbox: JSON text, its tags checked, made plain and tagged again.

#include "tests/fuzz/fuzz_support.hpp"

using namespace troupe;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto parsed = parse_json(fuzz::text_of(data, size));
  if (!parsed) {
    fuzz::require_decent(parsed.error());
    return 0;
  }
  if (auto checked = check_tagged(*parsed); !checked)
    fuzz::require_decent(checked.error());
  else
    fuzz::require_sound(*parsed);
  return 0;
}
