#include "tests/net/http_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// Certificates made on the spot: a CA, and keys signed by it.
class authority {
public:
  authority() {
    run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        " -subj '/CN=test CA' -keyout ca.key -out ca.pem");
  }

  [[nodiscard]] std::string ca_file() const { return dir_.file("ca.pem"); }

  /// `names` as OpenSSL's subjectAltName, e.g. "DNS:localhost,IP:127.0.0.1".
  http_server::options issue(const std::string& name, const std::string& names,
                             const std::string& validity = "-days 2") {
    run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj '/CN=" + name
        + "' -keyout " + name + ".key -out " + name + ".csr");
    run("echo subjectAltName=" + names + " > " + name + ".ext");
    run("openssl x509 -req -in " + name + ".csr -CA ca.pem -CAkey ca.key -CAcreateserial "
        + validity + " -extfile " + name + ".ext -out " + name + ".pem");
    return {.certificate_file = dir_.file(name + ".pem"), .key_file = dir_.file(name + ".key")};
  }

private:
  void run(const std::string& command) const {
    auto status = std::system(("cd '" + dir_.file("") + "' && " + command + " 2>> log").c_str());
    REQUIRE(status == 0);
  }

  temp_dir dir_;
};

authority& ca() {
  static authority made;
  return made;
}

http_server::options localhost_certificate() {
  static auto made = ca().issue("local", "DNS:localhost,IP:127.0.0.1");
  return made;
}

std::unique_ptr<http_server> serve_tls(reactor& io, http_server::options opts) {
  return serve(io, echo, std::move(opts));
}

http_failure refused(http_client& client, const url& to) {
  auto a = fetch(client, post(to), soon(patience));
  REQUIRE(!a);
  CHECK(!a.error().sent);
  CHECK(a.error().what.detail.find('\n') == std::string::npos);
  return a.error();
}

}  // namespace

TEST_CASE("HTTPS with a known issuer works, by name and by address, and is kept alive", "[tls]") {
  reactor io;
  auto server = serve_tls(io, localhost_certificate());
  http_client client{io, {.ca_file = ca().ca_file()}};
  for (std::size_t bytes : {std::size_t{2}, std::size_t{2000}, std::size_t{300'000}}) {
    std::string body(bytes, 'x');
    auto a = fetch(client, post({"https", "localhost", server->port(), ""}, body));
    INFO((a ? "" : a.error().what.detail));
    REQUIRE(a);
    CHECK(a->body == body);
  }
  CHECK(server->accepted() == 1);
  CHECK(fetch(client, post(local(server->port(), "https"))));
  CHECK(server->accepted() == 2);
}

TEST_CASE("an issuer that is not known is refused by name", "[tls]") {
  reactor io;
  auto server = serve_tls(io, localhost_certificate());
  authority other;
  http_client client{io, {.ca_file = other.ca_file()}};
  auto f = refused(client, {"https", "localhost", server->port(), ""});
  CHECK(f.what.code == errc::unavailable);
  CHECK(contains(f.what.detail, "issuer is unknown"));
  CHECK(client.stats().open == 0);
  http_client system_roots{io, {}};
  CHECK(contains(refused(system_roots, {"https", "localhost", server->port(), ""}).what.detail,
                 "issuer is unknown"));
}

TEST_CASE("a certificate for another host is refused, naming the host", "[tls]") {
  reactor io;
  auto server = serve_tls(io, ca().issue("other", "DNS:other.example"));
  http_client client{io, {.ca_file = ca().ca_file()}};
  CHECK(contains(refused(client, {"https", "localhost", server->port(), ""}).what.detail,
                 "not for 'localhost'"));
  CHECK(
    contains(refused(client, local(server->port(), "https")).what.detail, "not for '127.0.0.1'"));
  http_client lax{io, {.verify_peer = false}};
  CHECK(fetch(lax, post(local(server->port(), "https"))));
}

TEST_CASE("an expired certificate is refused as that", "[tls]") {
  reactor io;
  auto server = serve_tls(io, ca().issue("old", "DNS:localhost", "-days -1"));
  http_client client{io, {.ca_file = ca().ca_file()}};
  CHECK(contains(refused(client, {"https", "localhost", server->port(), ""}).what.detail,
                 "has expired"));
}

TEST_CASE("a server without TLS is told apart from one with a bad certificate", "[tls]") {
  reactor io;
  auto plain = serve_tls(io, {});
  http_client client{io, {.ca_file = ca().ca_file()}};
  CHECK(contains(refused(client, {"https", "localhost", plain->port(), ""}).what.detail,
                 "does not speak TLS"));
  raw_server closes{[](auto&, int) {}};
  CHECK(contains(refused(client, {"https", "localhost", closes.port(), ""}).what.detail,
                 "closed the connection during the handshake"));
}

TEST_CASE("a handshake that hangs ends at the deadline, in its own phase", "[tls]") {
  reactor io;
  raw_server silent{[](auto& peer, int) { peer.drain(); }};
  http_client client{io, {.ca_file = ca().ca_file()}};
  constexpr std::string_view phase = "during the TLS handshake";
  auto f = time_out(client, {"https", "localhost", silent.port(), ""}, phase);
  CHECK(contains(f.what.detail, phase));
}

TEST_CASE("a CA file that cannot be read fails each HTTPS call with its name", "[tls]") {
  reactor io;
  http_client client{io, {.ca_file = "/nonexistent/ca.pem"}};
  auto f = refused(client, {"https", "localhost", 1, ""});
  CHECK(f.what.code == errc::invalid_argument);
  CHECK(contains(f.what.detail, "/nonexistent/ca.pem"));
}

TEST_CASE("many calls at once share few TLS connections", "[tls]") {
  reactor io;
  auto server = serve_tls(io, localhost_certificate());
  http_client client{io, {.max_connections = 4, .ca_file = ca().ca_file()}};
  std::vector<pending> calls(60);
  for (std::size_t i = 0; i < calls.size(); ++i)
    client.send(post({"https", "localhost", server->port(), ""}, std::string(i * 500, 'x')), never,
                calls[i].done());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    auto a = calls[i].wait();
    INFO((a ? "" : a.error().what.detail));
    REQUIRE(a);
    CHECK(a->body.size() == i * 500);
  }
  CHECK(server->accepted() == 4);
}
