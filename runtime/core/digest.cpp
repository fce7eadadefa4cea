#include "runtime/core/digest.hpp"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace troupe {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error{"OpenSSL has no SHA-256"};
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    out += digits[digest[i] >> 4];
    out += digits[digest[i] & 0xF];
  }
  return out;
}

}  // namespace troupe
