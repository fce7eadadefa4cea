#pragma once
// An answer of the mock server before it is sent: what to write, when, and how it ends.

#include "runtime/core/time.hpp"
#include "runtime/model/codec.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// A part of a body and how long after the part before it (the first: after the head is due).
struct mock_piece {
  std::string bytes{};
  micros wait{0};

  bool operator==(const mock_piece&) const = default;
};

struct mock_answer {
  enum class ending : std::uint8_t {
    whole,
    cut,   ///< closed within the body
    reset  ///< by a TCP reset
  };
  unsigned status = 200;
  header_list headers{};
  std::vector<mock_piece> pieces{};
  bool streamed = false;   ///< chunked, else with a length
  bool no_answer = false;  ///< nothing is sent; `end` says how the connection ends
  micros hang{0};          ///< before no answer is given
  ending end = ending::whole;
};

}  // namespace troupe
