#pragma once
// What a request is, for those who look for it again: caches and cassettes.

#include "runtime/model/codec.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// All that decides a reply but chance: whom it is asked of, and every byte that is sent, whether
/// or not the reply is to be streamed. Keys and other headers are no part of it.
struct request_identity {
  std::string base;    ///< the endpoint's URL, or another name for what answers
  std::string target;  ///< path and query below it, e.g. "/chat/completions"
  std::string body;    ///< JSON, as sent for a reply in one piece

  /// SHA-256 of all three, lower-case hex.
  [[nodiscard]] std::string key() const;
};

[[nodiscard]] request_identity identify(const codec& format, std::string_view base,
                                        const model_request& request);

}  // namespace troupe
