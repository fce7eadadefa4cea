#include "runtime/net/http.hpp"
#include "runtime/net/proxy_settings.hpp"
#include "runtime/net/proxy_tunnel.hpp"

#include <catch2/catch_test_macros.hpp>

#include <map>

using namespace troupe;

namespace {

using variables = std::map<std::string, std::string>;

proxy_settings read(const variables& set, std::string_view option = "") {
  return proxies_from(
    [&set](const std::string& name) -> std::optional<std::string> {
      auto it = set.find(name);
      return it == set.end() ? std::nullopt : std::optional{it->second};
    },
    option);
}

/// "host:port (variable)" of the proxy for `to`, "straight", or the refusal.
std::string proxy_for(const proxy_settings& settings, std::string_view to) {
  auto u = parse_url(to);
  REQUIRE(u);
  auto via = settings.select(*u);
  if (!via)
    return via.error().detail;
  return *via == nullptr ? "straight" : to_string((*via)->at) + " (" + (*via)->named_in + ")";
}

bool is_exempt(const std::string& list, std::string_view to) {
  return proxy_for(read({{"ALL_PROXY", "p:1"}, {"NO_PROXY", list}}), to) == "straight";
}

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find('\n') == std::string::npos;
}

}  // namespace

TEST_CASE("each scheme has its variable, in lower case before upper, ALL_PROXY last", "[proxy]") {
  CHECK(proxy_for(read({}), "https://a.example") == "straight");
  auto all = variables{{"http_proxy", "http://h:1"},  {"HTTP_PROXY", "http://H2:2"},
                       {"https_proxy", "http://s:3"}, {"HTTPS_PROXY", "http://s2:4"},
                       {"all_proxy", "a:5"},          {"ALL_PROXY", "a2:6"}};
  CHECK(proxy_for(read(all), "http://a.example") == "h:1 (http_proxy)");
  CHECK(proxy_for(read(all), "https://a.example") == "s:3 (https_proxy)");
  all.erase("http_proxy");
  all["https_proxy"] = "";  // empty is not set
  CHECK(proxy_for(read(all), "http://a.example") == "h2:2 (HTTP_PROXY)");
  CHECK(proxy_for(read(all), "https://a.example") == "s2:4 (HTTPS_PROXY)");
  all.erase("HTTP_PROXY");
  all.erase("HTTPS_PROXY");
  CHECK(proxy_for(read(all), "http://a.example") == "a:5 (all_proxy)");
  all.erase("all_proxy");
  CHECK(proxy_for(read(all), "https://a.example") == "a2:6 (ALL_PROXY)");
  CHECK(proxy_for(read(all), "unix:///run/x.sock") == "straight");
}

TEST_CASE("HTTP_PROXY is not read where a web server may have set it", "[proxy]") {
  // https://httpoxy.org: a CGI program gets a request's "Proxy" header as HTTP_PROXY.
  variables cgi{{"REQUEST_METHOD", "GET"}, {"HTTP_PROXY", "evil:1"}, {"HTTPS_PROXY", "s:2"}};
  CHECK(proxy_for(read(cgi), "http://a.example") == "straight");
  CHECK(proxy_for(read(cgi), "https://a.example") == "s:2 (HTTPS_PROXY)");
  cgi["http_proxy"] = "h:3";
  CHECK(proxy_for(read(cgi), "http://a.example") == "h:3 (http_proxy)");
}

TEST_CASE("the option stands before the variables, and knows none", "[proxy]") {
  variables set{{"HTTPS_PROXY", "s:2"}, {"NO_PROXY", "b.example"}};
  CHECK(proxy_for(read(set, "http://o:9"), "https://a.example") == "o:9 (--proxy)");
  CHECK(proxy_for(read(set, "o:9"), "http://a.example") == "o:9 (--proxy)");
  CHECK(proxy_for(read(set, "o:9"), "https://b.example") == "straight");
  CHECK(proxy_for(read(set, "none"), "https://a.example") == "straight");
  auto refusal = proxy_for(read({}, "http://user:secret@o:9"), "https://a.example");
  has(refusal, "give that one in HTTP_PROXY and HTTPS_PROXY");
  CHECK(refusal.find("secret") == std::string::npos);
}

TEST_CASE("this machine is never reached through a proxy", "[proxy]") {
  auto all = read({{"ALL_PROXY", "p:1"}});
  for (const auto* to : {"http://localhost:8000", "http://api.localhost", "http://127.0.0.1",
                         "https://127.8.9.1:1", "http://[::1]:11434"})
    CHECK(proxy_for(all, to) == "straight");
  CHECK(proxy_for(all, "http://localhost.example") == "p:1 (ALL_PROXY)");
  CHECK(proxy_for(all, "http://128.0.0.1") == "p:1 (ALL_PROXY)");
}

TEST_CASE("a proxy's URL gives host, port, user and password", "[proxy]") {
  auto plain = parse_proxy("http://Proxy.Example:3128/", "X");
  REQUIRE(plain);
  CHECK(plain->at == host_port{{"proxy.example", false}, 3128});
  CHECK(plain->authorization.empty());
  CHECK(to_string(*plain) == "the proxy http://proxy.example:3128 (X)");
  CHECK(parse_proxy("10.0.0.1", "X")->at == host_port{{"10.0.0.1", true}, 80});
  CHECK(parse_proxy("[::1]:8080", "X")->at == host_port{{"::1", true}, 8080});
  // RFC 7617, section 2: its example.
  auto secret = parse_proxy("http://Aladdin:open%20sesame@p:1", "X");
  REQUIRE(secret);
  CHECK(secret->authorization == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  CHECK(to_string(*secret) == "the proxy http://p:1 (X)");
  CHECK(parse_proxy("u@p:1", "X")->authorization == "Basic dTo=");
  CHECK(parse_proxy("u:a%4@p:1", "X")->authorization == "Basic dTphJTQ=");
  CHECK(parse_proxy("u:a@b:c@p:1", "X")->authorization == "Basic dTphQGI6Yw==");
}

TEST_CASE("a proxy that cannot be used is named by its variable, without its password", "[proxy]") {
  auto refused = [](std::string_view text) {
    auto p = parse_proxy(text, "HTTPS_PROXY");
    REQUIRE(!p);
    CHECK(p.error().code == errc::invalid_argument);
    CHECK(has(p.error().detail, "the proxy in HTTPS_PROXY cannot be used: "));
    CHECK(p.error().detail.find("secret") == std::string::npos);
    return p.error().detail;
  };
  has(refused("socks5://u:secret@p:1080"), "proxies of the kind 'socks5' are not supported");
  has(refused("https://p:443"), "'https' are not supported; write http://");
  has(refused("http://u:secret@p:0"), "from 1 to 65535");
  has(refused("http://u:secret@"), "there is no host");
  has(refused("http://p:1/path"), "from 1 to 65535");
  has(refused("http://p q"), "letters a to z");
}

TEST_CASE("a bad proxy is an error only for what would go through it", "[proxy]") {
  auto set = read({{"ALL_PROXY", "socks5://p:1"}, {"HTTPS_PROXY", "s:2"}, {"NO_PROXY", ".lan"}});
  CHECK(proxy_for(set, "https://a.example") == "s:2 (HTTPS_PROXY)");
  CHECK(proxy_for(set, "http://box.lan") == "straight");
  CHECK(proxy_for(set, "http://localhost") == "straight");
  has(proxy_for(set, "http://a.example"), "the proxy in ALL_PROXY cannot be used");
}

TEST_CASE("NO_PROXY takes names, suffixes, ports, addresses, networks and *", "[proxy]") {
  // A name covers itself and what is below it, with or without a dot before it: curl's rule.
  for (const auto* entry : {"example.com", ".example.com", "EXAMPLE.com.", "x, example.com ,y"}) {
    INFO(entry);
    CHECK(is_exempt(entry, "https://example.com"));
    CHECK(is_exempt(entry, "https://api.Example.com:8443"));
    CHECK(is_exempt(entry, "https://example.com."));
    CHECK(!is_exempt(entry, "https://badexample.com"));
    CHECK(!is_exempt(entry, "https://example.com.evil.example"));
  }
  CHECK(is_exempt("*.example.com", "https://a.example.com"));
  CHECK(!is_exempt("*.example.com", "https://example.com"));
  CHECK(is_exempt("a.example:8080", "http://a.example:8080"));
  CHECK(!is_exempt("a.example:8080", "http://a.example:8081"));
  CHECK(is_exempt("a.example b.example", "http://b.example"));
  CHECK(is_exempt("*", "https://anything.example"));
  CHECK(is_exempt("x,*", "https://10.1.1.1"));

  CHECK(is_exempt("10.1.2.3", "http://10.1.2.3:99"));
  CHECK(!is_exempt("10.1.2.3", "http://10.1.2.30"));
  CHECK(is_exempt("10.1.2.3:99", "http://10.1.2.3:99"));
  CHECK(!is_exempt("10.1.2.3:99", "http://10.1.2.3:98"));
  CHECK(is_exempt("10.0.0.0/8", "http://10.255.0.1"));
  CHECK(!is_exempt("10.0.0.0/8", "http://11.0.0.1"));
  CHECK(is_exempt("192.168.4.0/22", "http://192.168.7.255"));
  CHECK(!is_exempt("192.168.4.0/22", "http://192.168.8.0"));
  CHECK(is_exempt("0.0.0.0/0", "http://203.0.113.1"));
  CHECK(!is_exempt("0.0.0.0/0", "http://[2001:db8::1]"));
  CHECK(!is_exempt("1", "http://10.0.0.1"));

  CHECK(is_exempt("2001:db8::1", "http://[2001:db8::1]"));
  CHECK(is_exempt("[2001:db8::1]:80", "http://[2001:db8::1]"));
  CHECK(!is_exempt("[2001:db8::1]:80", "http://[2001:db8::1]:81"));
  CHECK(is_exempt("2001:db8::/33", "http://[2001:db8:7fff::1]"));
  CHECK(!is_exempt("2001:db8::/33", "http://[2001:db8:8000::1]"));
  CHECK(is_exempt("::ffff:10.0.0.0/104", "http://10.9.9.9"));
}

TEST_CASE("entries of NO_PROXY that mean nothing are kept to be told", "[proxy]") {
  auto set =
    read({{"ALL_PROXY", "p:1"}, {"no_proxy", "10.0.0.0/33,a b:x,http://c,::/129,ok.example"}});
  CHECK(set.not_understood == std::vector<std::string>{"10.0.0.0/33", "b:x", "http://c", "::/129"});
  CHECK(set.exempt.size() == 2);
}

TEST_CASE("a tunnel's refusal names proxy, variable, host and mend", "[proxy]") {
  auto via = *parse_proxy("http://u:secret@p:3128", "HTTPS_PROXY");
  url to{"https", "api.example", 443, ""};
  CHECK(tunnel_request(to, via)
        == "CONNECT api.example:443 HTTP/1.1\r\nhost: api.example:443\r\nuser-agent: troupe\r\n"
           "proxy-authorization: Basic dTpzZWNyZXQ=\r\n\r\n");
  CHECK(tunnel_request({"https", "::1", 8443, ""}, *parse_proxy("p", "X"))
        == "CONNECT [::1]:8443 HTTP/1.1\r\nhost: [::1]:8443\r\nuser-agent: troupe\r\n\r\n");

  auto refusal = [&](unsigned status, std::string reason) {
    auto r = read_tunnel_answer({.status = status, .reason = std::move(reason)}, to, via);
    REQUIRE(!r);
    has(r.error().detail, "the proxy http://p:3128 (HTTPS_PROXY) ");
    CHECK(r.error().detail.find("secret") == std::string::npos);
    return r.error();
  };
  CHECK(read_tunnel_answer({.status = 200}, to, via));
  auto wrong = refusal(407, "Proxy Authentication Required");
  CHECK(wrong.code == errc::denied);
  has(wrong.detail, "does not take the user and password given (407)");
  auto denied = refusal(403, "Forbidden");
  CHECK(denied.code == errc::denied);
  has(denied.detail, "does not open a connection to api.example:443 (403 Forbidden)");
  CHECK(refusal(501, "No").code == errc::denied);
  CHECK(refusal(302, "Login").code == errc::denied);
  auto down = refusal(502, "Bad\x1bGateway");
  CHECK(down.code == errc::unavailable);
  has(down.detail, "could not reach api.example:443 (502 Bad.Gateway)");
  CHECK(refusal(504, "").code == errc::unavailable);
  has(password_wanted(*parse_proxy("p:3128", "HTTPS_PROXY")).detail,
      "wants a user and a password (407); write http://user:password@p:3128 in HTTPS_PROXY");
}
