#include "runtime/net/public_address.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe {
namespace {

namespace ip = boost::asio::ip;

struct range {
  const char* first;
  unsigned bits;
  const char* what;  ///< nullptr: public
};

// The first range that holds an address says what it is.
constexpr range v4_ranges[] = {
  {"0.0.0.0", 32, "the unspecified address"},
  {"0.0.0.0", 8, "an address of \"this network\""},
  {"10.0.0.0", 8, "a private address"},
  {"100.64.0.0", 10, "an address of a carrier's private network"},
  {"127.0.0.0", 8, "a loopback address"},
  {"168.63.129.16", 32, "a cloud's internal address"},  // Azure's; looks public, is none
  {"169.254.0.0", 16, "a link-local address"},          // the clouds' metadata: 169.254.169.254
  {"172.16.0.0", 12, "a private address"},
  {"192.0.0.0", 24, "an address for protocols"},
  {"192.0.2.0", 24, "a documentation address"},
  {"192.88.99.0", 24, "a relay's address"},
  {"192.168.0.0", 16, "a private address"},
  {"198.18.0.0", 15, "a benchmarking address"},
  {"198.51.100.0", 24, "a documentation address"},
  {"203.0.113.0", 24, "a documentation address"},
  {"224.0.0.0", 4, "a multicast address"},
  {"255.255.255.255", 32, "the broadcast address"},
  {"240.0.0.0", 4, "a reserved address"},
};

constexpr range v6_ranges[] = {
  {"::", 128, "the unspecified address"},
  {"::1", 128, "a loopback address"},
  {"fc00::", 7, "a private address"},
  {"fe80::", 10, "a link-local address"},
  {"fec0::", 10, "a site-local address"},
  {"ff00::", 8, "a multicast address"},
  {"2001::", 23, "an address for protocols"},  // Teredo, benchmarking, ORCHID and others
  {"2001:db8::", 32, "a documentation address"},
  {"3fff::", 20, "a documentation address"},
  {"2000::", 3, nullptr},
  {"::", 0, "a reserved address"},
};

struct embedding {
  const char* first;
  unsigned bits;
  std::size_t offset;  ///< of the IPv4 address, in bytes
};

constexpr embedding embeddings[] = {
  {"::ffff:0:0", 96, 12},  // IPv4-mapped
  {"64:ff9b::", 96, 12},   // NAT64
  {"2002::", 16, 2},       // 6to4
};

template <class Bytes>
bool same_prefix(const Bytes& a, const Bytes& b, unsigned bits) {
  for (std::size_t i = 0; bits > 0; ++i) {
    auto here = std::min(bits, 8u);
    if (((a[i] ^ b[i]) >> (8 - here)) != 0)
      return false;
    bits -= here;
  }
  return true;
}

const char* judge(const ip::address_v4& a) {
  for (const auto& r : v4_ranges)
    if (same_prefix(a.to_bytes(), ip::make_address_v4(r.first).to_bytes(), r.bits))
      return r.what;
  return nullptr;
}

const char* judge(const ip::address_v6& a) {
  auto bytes = a.to_bytes();
  for (const auto& e : embeddings)
    if (same_prefix(bytes, ip::make_address_v6(e.first).to_bytes(), e.bits)) {
      ip::address_v4::bytes_type inner;
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(e.offset), 4, inner.begin());
      return judge(ip::address_v4{inner});
    }
  for (const auto& r : v6_ranges)
    if (same_prefix(bytes, ip::make_address_v6(r.first).to_bytes(), r.bits))
      return r.what;
  return nullptr;
}

}  // namespace

ip::address unmapped(const ip::address& a) {
  if (a.is_v6() && a.to_v6().is_v4_mapped())
    return ip::make_address_v4(ip::v4_mapped, a.to_v6());
  return a;
}

const char* why_not_public(const ip::address& a) {
  return a.is_v4() ? judge(a.to_v4()) : judge(a.to_v6());
}

}  // namespace troupe
