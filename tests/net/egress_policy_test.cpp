#include "runtime/net/egress_policy.hpp"
#include "runtime/net/public_address.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

egress_policy policy(const std::vector<std::string>& rules) {
  auto p = parse_egress_policy(rules);
  INFO((p ? std::string{} : p.error().detail));
  REQUIRE(p);
  return *p;
}

bool allows(const egress_policy& p, std::string_view to) {
  auto parsed = parse_host_port(to);
  INFO(to);
  REQUIRE(parsed);
  return p.allows(*parsed);
}

std::string host_of(std::string_view text) {
  auto h = parse_host(text);
  INFO(text << (h ? std::string{} : ": " + h.error().detail));
  REQUIRE(h);
  return (h->is_address ? "address " : "name ") + h->text;
}

const char* judged(const char* address) {
  return why_not_public(boost::asio::ip::make_address(address));
}

}  // namespace

TEST_CASE("a policy without rules allows nothing", "[egress]") {
  CHECK(!allows({}, "example.org:443"));
  CHECK(!allows(policy({}), "127.0.0.1:80"));
}

TEST_CASE("a rule allows its host on its port alone, whatever the case", "[egress]") {
  auto p = policy({"Example.ORG:443", "any.example.net:*"});
  CHECK(allows(p, "example.org:443"));
  CHECK(allows(p, "EXAMPLE.org.:443"));
  CHECK(!allows(p, "example.org:80"));
  CHECK(!allows(p, "www.example.org:443"));
  CHECK(!allows(p, "notexample.org:443"));
  CHECK(!allows(p, "example.org.evil.net:443"));
  CHECK(allows(p, "any.example.net:1"));
  CHECK(allows(p, "any.example.net:65535"));
}

TEST_CASE("a star stands for one or more labels, not for none", "[egress]") {
  auto p = policy({"*.example.org:443"});
  CHECK(allows(p, "a.example.org:443"));
  CHECK(allows(p, "a.b.example.org:443"));
  CHECK(!allows(p, "example.org:443"));
  CHECK(!allows(p, "aexample.org:443"));
  CHECK(!allows(p, "a.example.org:80"));
  CHECK(!allows(p, "a.example.org.net:443"));
}

TEST_CASE("an address is matched as an address, however it is written", "[egress]") {
  auto p = policy({"10.1.2.3:8080", "[::1]:80", "[2001:DB8:0::5]:*"});
  CHECK(allows(p, "10.1.2.3:8080"));
  CHECK(allows(p, "[::ffff:10.1.2.3]:8080"));
  CHECK(allows(p, "[0:0:0:0:0:0:0:1]:80"));
  CHECK(allows(p, "[2001:db8::5]:1"));
  CHECK(!allows(p, "10.1.2.3:80"));
  CHECK(!allows(p, "10.1.2.30:8080"));
  CHECK(!allows(p, "[::2]:80"));
  // What some programs take for 10.1.2.3 is a name here, and no rule's.
  CHECK(!allows(p, "167838211:8080"));
  CHECK(!allows(p, "0x0a.1.2.3:8080"));
  CHECK(!allows(p, "012.1.2.3:8080"));
}

TEST_CASE("a bad rule is named, with what is wrong and what is accepted", "[egress]") {
  struct row {
    const char* rule;
    const char* why;
  };
  for (auto [rule, why] : {
         row{"", "the port is missing"},
         {"example.org", "the port is missing"},
         {"[::1]", "the port is missing"},
         {"example.org:", "the port must be '*' or a number from 1 to 65535"},
         {"example.org:0", "the port must be"},
         {"example.org:65536", "the port must be"},
         {"example.org:+80", "the port must be"},
         {"example.org:80 ", "the port must be"},
         {"https://example.org:443", "no scheme and no path"},
         {"example.org/x:443", "no scheme and no path"},
         {":443", "there is no host"},
         {"*:443", "a '*' may stand for the port"},
         {"*.*.org:443", "a '*' may stand for the port"},
         {"www*.org:443", "a '*' may stand for the port"},
         {"*.10.1.2.3:80", "an address has no subdomains"},
         {"10.1.2:80", "four decimal numbers"},
         {"10.1.2.256:80", "four decimal numbers"},
         {"2130706433:80", "four decimal numbers"},
         {"0x7f.0x1:80", "four decimal numbers"},
         {"::1:80", "needs [brackets]"},
         {"[::1%lo]:80", "without a zone"},
         {"[10.1.2.3]:80", "between [ and ]"},
         {"a..b:80", "each part"},
         {"ex ample.org:80", "letters a to z"},
         {"bücher.example:80", "xn--"},
       }) {
    INFO(rule);
    auto p = parse_egress_policy({"fine.example:1", rule});
    REQUIRE(!p);
    CHECK(p.error().code == errc::invalid_argument);
    INFO(p.error().detail);
    CHECK(p.error().detail.find("'" + std::string{rule} + "'") != std::string::npos);
    CHECK(p.error().detail.find(why) != std::string::npos);
    CHECK(p.error().detail.find("write example.org:443") != std::string::npos);
  }
}

TEST_CASE("a rule is written as it was read, in one form", "[egress]") {
  auto p = policy({"*.Example.org:443", "host:*", "[0:0::1]:80", "[::ffff:10.1.2.3]:5"});
  CHECK(to_string(p.rules[0]) == "*.example.org:443");
  CHECK(to_string(p.rules[1]) == "host:*");
  CHECK(to_string(p.rules[2]) == "[::1]:80");
  CHECK(to_string(p.rules[3]) == "10.1.2.3:5");
}

TEST_CASE("only dotted quads and bracketed IPv6 are addresses", "[egress]") {
  CHECK(host_of("127.0.0.1") == "address 127.0.0.1");
  CHECK(host_of("[::1]") == "address ::1");
  CHECK(host_of("[FE80::1]") == "address fe80::1");
  CHECK(host_of("[::ffff:7f00:1]") == "address 127.0.0.1");
  for (auto* text : {"2130706433", "0x7f.1", "0177.0.0.1", "127.1", "127.0.0.1.5", "1.2.3.256",
                     "0x7f000001", "127.0.0.01", "fe80"})
    CHECK(host_of(text) == "name " + std::string{text});
  CHECK(host_of("WWW.Example.Org.") == "name www.example.org");
  CHECK(host_of("127.0.0.1.") == "name 127.0.0.1");
  CHECK(host_of("xn--bcher-kva.example") == "name xn--bcher-kva.example");
}

TEST_CASE("what is no host is refused, and not repeated", "[egress]") {
  using namespace std::string_view_literals;
  for (auto text : {""sv,
                    "."sv,
                    ".."sv,
                    "a..b"sv,
                    ".a"sv,
                    "a b"sv,
                    "a\r\nb"sv,
                    "a\0b"sv,
                    "127.0.0.1\0.example"sv,
                    "[::1\0]"sv,
                    "b\xc3\xbc.example"sv,
                    "a%00b"sv,
                    "a/b"sv,
                    "a@b"sv,
                    "a\\b"sv,
                    "::1"sv,
                    "[::1"sv,
                    "[]"sv,
                    "[::1]x"sv,
                    "[fe80::1%25eth0]"sv,
                    "[1.2.3.4]"sv,
                    "[::g]"sv,
                    "*"sv}) {
    INFO(text);
    auto h = parse_host(text);
    REQUIRE(!h);
    CHECK(h.error().code == errc::invalid_argument);
    CHECK(h.error().detail.find_first_of("\r\n\xc3") == std::string::npos);
  }
  CHECK(!parse_host(std::string(64, 'a') + ".example"));
  CHECK(parse_host(std::string(63, 'a') + ".example"));
  std::string longest;
  for (int i = 0; i < 126; ++i)
    longest += "a.";
  CHECK(parse_host(longest + "a"));
  CHECK(!parse_host(longest + "ab"));
  CHECK(!parse_host(std::string(1u << 20, 'a')));
}

TEST_CASE("addresses that are not the public internet's say what they are", "[egress]") {
  // Source: IANA IPv4 and IPv6 Special-Purpose Address Registries.
  struct row {
    const char* address;
    std::string_view what;
  };
  for (auto [address, what] : {
         row{"0.0.0.0", "unspecified"},
         {"0.1.2.3", "this network"},
         {"10.0.0.0", "private"},
         {"10.255.255.255", "private"},
         {"100.64.0.1", "carrier"},
         {"100.100.100.200", "carrier"},  // Alibaba's metadata
         {"100.127.255.255", "carrier"},
         {"127.0.0.1", "loopback"},
         {"127.255.255.254", "loopback"},
         {"168.63.129.16", "cloud"},
         {"169.254.169.254", "link-local"},
         {"172.16.0.1", "private"},
         {"172.31.255.255", "private"},
         {"192.0.0.192", "protocols"},  // Oracle's metadata
         {"192.0.2.1", "documentation"},
         {"192.168.1.1", "private"},
         {"198.18.0.1", "benchmarking"},
         {"198.19.255.255", "benchmarking"},
         {"198.51.100.7", "documentation"},
         {"203.0.113.7", "documentation"},
         {"224.0.0.1", "multicast"},
         {"239.255.255.255", "multicast"},
         {"240.0.0.1", "reserved"},
         {"255.255.255.255", "broadcast"},
         {"::", "unspecified"},
         {"::1", "loopback"},
         {"::7f00:1", "reserved"},  // IPv4-compatible
         {"::ffff:127.0.0.1", "loopback"},
         {"::ffff:169.254.169.254", "link-local"},
         {"::ffff:0:127.0.0.1", "reserved"},  // IPv4-translated
         {"64:ff9b::10.0.0.1", "private"},
         {"64:ff9b:1::1", "reserved"},
         {"100::1", "reserved"},
         {"2001::1", "protocols"},  // Teredo
         {"2001:db8::1", "documentation"},
         {"2002:7f00:1::", "loopback"},  // 6to4
         {"2002:a9fe:a9fe::1", "link-local"},
         {"3fff::1", "documentation"},
         {"4000::1", "reserved"},
         {"fc00::1", "private"},
         {"fd00:ec2::254", "private"},  // Amazon's metadata
         {"fe80::1", "link-local"},
         {"febf::1", "link-local"},
         {"fec0::1", "site-local"},
         {"ff02::1", "multicast"},
       }) {
    INFO(address);
    const auto* why = judged(address);
    REQUIRE(why != nullptr);
    CHECK(std::string_view{why}.find(what) != std::string_view::npos);
  }
}

TEST_CASE("the neighbours of those ranges are public", "[egress]") {
  for (auto* address :
       {"1.0.0.0",         "9.255.255.255",    "11.0.0.0",        "100.63.255.255",
        "100.128.0.0",     "126.255.255.255",  "128.0.0.1",       "169.253.255.255",
        "169.255.0.0",     "172.15.255.255",   "172.32.0.0",      "192.0.1.0",
        "192.167.255.255", "192.169.0.0",      "198.17.255.255",  "198.20.0.0",
        "223.255.255.255", "93.184.216.34",    "2001:200::1",     "2606:2800:220:1::1",
        "2a00:1450::1",    "64:ff9b::8.8.8.8", "2002:808:808::1", "::ffff:8.8.8.8"}) {
    INFO(address);
    CHECK(judged(address) == nullptr);
  }
}
