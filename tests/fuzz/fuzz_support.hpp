#pragma once
// What the fuzz targets share. Each target is one function, called with bytes of any kind; a
// statement that does not hold ends the process, which is how a fuzzer is told.

#include "runtime/core/error.hpp"
#include "runtime/core/json.hpp"
#include "runtime/core/text.hpp"
#include "runtime/core/value.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace troupe::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline void require(bool holds, const char* statement) {
  if (holds)
    return;
  std::fprintf(stderr, "does not hold: %s\n", statement);
  std::abort();
}

/// A refusal is shown to a model and kept in a journal, so the sandbox must not choose its size.
inline void require_decent(const error& e) {
  constexpr std::size_t longest = 4096;
  require(e.code == errc::corrupt, "a refusal's kind is corrupt");
  require(!e.detail.empty() && e.detail.size() <= longest, "a refusal is short");
  require(is_utf8(e.detail), "a refusal is UTF-8");
}

/// What was accepted as tagged can be shown, written, and read again without change.
inline void require_sound(const json& tagged) {
  require(check_tagged(tagged).has_value(), "a value passes its own check");
  constexpr json_limits wide{static_cast<std::size_t>(-1), 256};
  auto again = parse_json(dump_json(tagged), wide);
  require(again && *again == tagged, "a value is the same after it was written and read");
  auto plain = to_plain(tagged);
  auto back = to_tagged(plain);
  require(check_tagged(back).has_value(), "a plain value passes the check once it is tagged");
  require(to_plain(back) == plain, "a plain value is the same after it was tagged");
}

}  // namespace troupe::fuzz
