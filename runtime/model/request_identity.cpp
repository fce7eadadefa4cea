#include "runtime/model/request_identity.hpp"

#include "runtime/core/digest.hpp"

namespace troupe {

std::string request_identity::key() const {
  return sha256_hex(base + target + '\n' + body);
}

request_identity identify(const codec& format, std::string_view base,
                          const model_request& request) {
  auto encoded = format.encode(request, delivery::whole);
  request_identity out{std::string{base}, std::move(encoded.target), {}};
  out.body.reserve(encoded.bytes());
  out.body += encoded.head;
  for (auto piece : encoded.messages.pieces())
    out.body += piece;
  out.body += encoded.tail;
  return out;
}

}  // namespace troupe
