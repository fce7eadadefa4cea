#include "tests/net/http_fixture.hpp"
#include "tests/net/test_authority.hpp"

#include <catch2/catch_test_macros.hpp>
#include <openssl/ssl.h>

#include <cstdlib>
#include <fstream>

#include <sys/socket.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

http_server::options localhost_certificate() {
  static auto made = ca().issue("local", "DNS:localhost,IP:127.0.0.1");
  return made;
}

std::unique_ptr<http_server> serve_tls(reactor& io, http_server::options opts) {
  return serve(io, echo, std::move(opts));
}

/// A server's side of one handshake on a blocking socket, with OpenSSL alone: for what http_server
/// does not offer. `change` sets it up.
void shake_as_server(raw_server::peer& client, const http_server::options& mine,
                     const std::function<void(SSL_CTX*)>& change) {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{SSL_CTX_new(TLS_server_method()),
                                                            &SSL_CTX_free};
  must(SSL_CTX_use_certificate_chain_file(context.get(), mine.certificate_file.c_str()) == 1);
  must(SSL_CTX_use_PrivateKey_file(context.get(), mine.key_file.c_str(), SSL_FILETYPE_PEM) == 1);
  change(context.get());
  std::unique_ptr<SSL, decltype(&SSL_free)> tls{SSL_new(context.get()), &SSL_free};
  SSL_set_fd(tls.get(), client.fd());
  SSL_accept(tls.get());
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
  CHECK(f.what.code == errc::denied);
  CHECK(contains(f.what.detail, "issuer is unknown"));
  CHECK(contains(f.what.detail, "--ca-file or SSL_CERT_FILE"));
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

TEST_CASE("a certificate that is not valid yet is refused as that", "[tls]") {
  reactor io;
  auto server = serve_tls(io, ca().issue_for_tomorrow("young", "DNS:localhost"));
  http_client client{io, {.ca_file = ca().ca_file()}};
  auto f = refused(client, {"https", "localhost", server->port(), ""});
  CHECK(f.what.code == errc::denied);
  CHECK(contains(f.what.detail, "is not valid yet"));
  CHECK(contains(f.what.detail, "check this machine's clock"));
}

TEST_CASE("a self-signed certificate is refused as that, and accepted as its own CA", "[tls]") {
  reactor io;
  auto server = serve_tls(io, ca().self_signed("alone", "DNS:localhost"));
  http_client client{io, {.ca_file = ca().ca_file()}};
  auto f = refused(client, {"https", "localhost", server->port(), ""});
  CHECK(f.what.code == errc::denied);
  CHECK(contains(f.what.detail, "the certificate is self-signed"));
  CHECK(contains(f.what.detail, "give it with --ca-file"));
  http_client knows{io, {.ca_file = ca().file("alone.pem")}};
  CHECK(fetch(knows, post({"https", "localhost", server->port(), ""})));
}

TEST_CASE("a server that speaks old versions alone is refused as that", "[tls]") {
  reactor io;
  auto mine = localhost_certificate();
  raw_server old{[&](auto& peer, int) {
    shake_as_server(peer, mine, [](SSL_CTX* c) {
      SSL_CTX_set_cipher_list(c, "ALL:@SECLEVEL=0");
      SSL_CTX_set_min_proto_version(c, TLS1_VERSION);
      SSL_CTX_set_max_proto_version(c, TLS1_1_VERSION);
    });
  }};
  http_client client{io, {.ca_file = ca().ca_file()}};
  auto f = refused(client, {"https", "localhost", old.port(), ""});
  CHECK(f.what.code == errc::denied);
  CHECK(contains(f.what.detail, "only versions older than TLS 1.2"));
}

TEST_CASE("a server that wants a client's certificate is told apart", "[tls]") {
  reactor io;
  auto mine = localhost_certificate();
  raw_server strict{[&](auto& peer, int) {
    shake_as_server(peer, mine, [](SSL_CTX* c) {
      SSL_CTX_set_max_proto_version(c, TLS1_2_VERSION);
      SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    });
  }};
  http_client client{io, {.ca_file = ca().ca_file()}};
  auto f = refused(client, {"https", "localhost", strict.port(), ""});
  CHECK(f.what.code == errc::denied);
  CHECK(contains(f.what.detail, "it may want a client's certificate"));
}

TEST_CASE("the server learns the host's name, and that we speak HTTP/1.1", "[tls]") {
  reactor io;
  struct heard {
    std::string name, protocols;
  };
  std::promise<heard> told;
  auto mine = localhost_certificate();
  raw_server server{[&](auto& peer, int) {
    shake_as_server(peer, mine, [&](SSL_CTX* c) {
      SSL_CTX_set_alpn_select_cb(
        c,
        [](SSL* tls, const unsigned char**, unsigned char*, const unsigned char* in,
           unsigned int size, void* into) {
          heard h;
          const auto* name = SSL_get_servername(tls, TLSEXT_NAMETYPE_host_name);
          h.name = name != nullptr ? name : "(none)";
          h.protocols.assign(reinterpret_cast<const char*>(in), size);
          static_cast<std::promise<heard>*>(into)->set_value(h);
          return SSL_TLSEXT_ERR_ALERT_FATAL;
        },
        &told);
    });
  }};
  http_client client{io, {.ca_file = ca().ca_file()}};
  auto f = refused(client, {"https", "localhost", server.port(), ""});
  CHECK(contains(f.what.detail, "TLS: the handshake failed: "));
  auto what = told.get_future().get();
  CHECK(what.name == "localhost");
  CHECK(what.protocols == "\x08http/1.1");  // RFC 7301, section 3.1
}

TEST_CASE("a request to a port that speaks TLS says to write https://", "[tls]") {
  reactor io;
  raw_server tls_port{[](auto& peer, int) {
    peer.send("\x15\x03\x01");  // the alert unexpected_message: RFC 8446, sections 5.1 and 6
    peer.send({"\x00\x02\x02\x0a", 4});
    peer.drain();
  }};
  http_client client{io, {}};
  auto f = failed(fetch(client, post(local(tls_port.port())), soon(patience)));
  CHECK(f.what.code == errc::invalid_argument);
  CHECK(contains(f.what.detail, "the server speaks TLS on this port; write https://"));
}

TEST_CASE("a handshake that is cut is no verdict on the certificate", "[tls]") {
  reactor io;
  raw_server cuts{[](auto& peer, int) {
    std::array<char, 64> some;
    static_cast<void>(::recv(peer.fd(), some.data(), some.size(), 0));
    peer.send({"\x16\x03\x03\x00\x40\x02", 6});  // the beginning of a ServerHello
  }};
  http_client client{io, {.ca_file = ca().ca_file()}};
  auto f = refused(client, {"https", "localhost", cuts.port(), ""});
  CHECK(f.what.code == errc::unavailable);
  CHECK(contains(f.what.detail, "closed the connection during the handshake"));
}

TEST_CASE("a CA file without a certificate is refused with its name", "[tls]") {
  reactor io;
  temp_dir dir;
  std::ofstream{dir.file("ca.pem")} << "not a certificate\n";
  http_client client{io, {.ca_file = dir.file("ca.pem")}};
  auto f = refused(client, {"https", "localhost", 1, ""});
  CHECK(f.what.code == errc::invalid_argument);
  CHECK(contains(f.what.detail, "cannot use the CA file '" + dir.file("ca.pem")));
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
