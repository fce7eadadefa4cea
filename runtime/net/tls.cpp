#include "runtime/net/tls.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/error.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace troupe {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

constexpr auto no_old_versions = ssl::context::default_workarounds | ssl::context::no_sslv2
                                 | ssl::context::no_sslv3 | ssl::context::no_tlsv1
                                 | ssl::context::no_tlsv1_1;

std::string explain_verification(long verdict, const std::string& host) {
  auto words = std::string{" ("} + X509_verify_cert_error_string(verdict) + ")";
  switch (verdict) {
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    return "the certificate is self-signed" + words
           + "; if it is the right one, give it with --ca-file";
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    return "the certificate's issuer is unknown" + words
           + "; give the issuer's CA with --ca-file or SSL_CERT_FILE, or install it (package "
             "ca-certificates has the public ones)";
  case X509_V_ERR_HOSTNAME_MISMATCH:
  case X509_V_ERR_IP_ADDRESS_MISMATCH:
    return "the certificate is not for '" + host + "'" + words + "; check the URL's host";
  case X509_V_ERR_CERT_HAS_EXPIRED:
    return "the certificate has expired" + words + "; renew it, or check this machine's clock";
  case X509_V_ERR_CERT_NOT_YET_VALID:
    return "the certificate is not valid yet" + words + "; check this machine's clock";
  case X509_V_ERR_EE_KEY_TOO_SMALL:
  case X509_V_ERR_CA_KEY_TOO_SMALL:
  case X509_V_ERR_CA_MD_TOO_WEAK:
    return "the certificate is too weak" + words + "; the server needs a new one";
  default:
    return "the certificate was not accepted" + words;
  }
}

/// What OpenSSL's reason means for the user; "" for one that needs its own words.
error explain_reason(int reason) {
  switch (reason) {
  case SSL_R_WRONG_VERSION_NUMBER:  // also what a peer's text looks like
  case SSL_R_HTTP_REQUEST:
  case SSL_R_PACKET_LENGTH_TOO_LONG:
    return {errc::invalid_argument,
            "the server does not speak TLS on this port; use http:// or another port"};
  case SSL_R_UNSUPPORTED_PROTOCOL:
  case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    return {errc::denied, "the server speaks only versions older than TLS 1.2, which are not safe; "
                          "it needs an update"};
  case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
  case SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY:
    return {errc::denied, "the server accepts nothing that we offer: it may want a client's "
                          "certificate, which is not supported, or have old ciphers alone"};
  case SSL_R_TLSV1_UNRECOGNIZED_NAME:
    return {errc::denied, "the server does not know this host name; check the URL's host"};
  default:
    return {};
  }
}

}  // namespace

result<tls_context> client_tls(const std::string& ca_file, bool verify_peer) {
  auto made = std::make_shared<ssl::context>(ssl::context::tls_client);
  error_code ec;
  made->set_options(no_old_versions, ec);
  made->set_verify_mode(verify_peer ? ssl::verify_peer : ssl::verify_none, ec);
  // A server that prefers HTTP/2 must know that we do not speak it. RFC 7301.
  constexpr unsigned char protocols[] = "\x08http/1.1";
  SSL_CTX_set_alpn_protos(made->native_handle(), protocols, sizeof protocols - 1);
  if (ca_file.empty())
    made->set_default_verify_paths(ec);
  else
    made->load_verify_file(ca_file, ec);
  if (ec)
    return fail(errc::invalid_argument,
                "cannot use the CA file '" + ca_file + "' (PEM expected): " + ec.message());
  return made;
}

result<tls_context> server_tls(const std::string& certificate_file, const std::string& key_file) {
  auto made = std::make_shared<ssl::context>(ssl::context::tls_server);
  error_code ec;
  made->set_options(no_old_versions, ec);
  made->use_certificate_chain_file(certificate_file, ec);
  if (ec)
    return fail(errc::invalid_argument, "cannot use the certificate file '" + certificate_file
                                          + "' (PEM expected): " + ec.message());
  made->use_private_key_file(key_file, ssl::context::pem, ec);
  if (ec)
    return fail(errc::invalid_argument,
                "cannot use the key file '" + key_file + "' (PEM expected): " + ec.message());
  return made;
}

bool expect_peer(SSL* tls, const std::string& host, bool verify) {
  error_code not_an_address;
  boost::asio::ip::make_address(host, not_an_address);
  // SSL_set_tlsext_host_name is a macro with an old-style cast of its argument's constness.
  if (not_an_address
      && SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                  const_cast<char*>(host.c_str()))
           != 1)
    return false;
  if (!verify)
    return true;
  SSL_set_hostflags(tls, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (not_an_address)
    return SSL_set1_host(tls, host.c_str()) == 1;
  return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host.c_str()) == 1;
}

error explain_handshake(const error_code& ec, SSL* tls, const std::string& host) {
  if (auto verdict = SSL_get_verify_result(tls); verdict != X509_V_OK)
    return {errc::denied, "TLS: " + explain_verification(verdict, host)};
  if (ec.category() == boost::asio::error::get_ssl_category()) {
    auto known = explain_reason(ERR_GET_REASON(static_cast<unsigned long>(ec.value())));
    if (!known.detail.empty())
      return {known.code, "TLS: " + known.detail};
  }
  if (ec == boost::asio::error::eof || ec == ssl::error::stream_truncated
      || ec == boost::asio::error::connection_reset)
    return {errc::unavailable, "TLS: the server closed the connection during the handshake"};
  return {errc::unavailable, "TLS: the handshake failed: " + ec.message()};
}

}  // namespace troupe
