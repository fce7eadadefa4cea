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
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    return "the certificate's issuer is unknown" + words
           + "; give its CA file, or install the CA in the system's store";
  case X509_V_ERR_HOSTNAME_MISMATCH:
  case X509_V_ERR_IP_ADDRESS_MISMATCH:
    return "the certificate is not for '" + host + "'" + words + "; check the URL's host";
  case X509_V_ERR_CERT_HAS_EXPIRED:
    return "the certificate has expired" + words + "; renew it, or check this machine's clock";
  case X509_V_ERR_CERT_NOT_YET_VALID:
    return "the certificate is not valid yet" + words + "; check this machine's clock";
  default:
    return "the certificate was not accepted" + words;
  }
}

bool is_not_tls(const error_code& ec) {
  if (ec.category() != boost::asio::error::get_ssl_category())
    return false;
  auto reason = ERR_GET_REASON(static_cast<unsigned long>(ec.value()));
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST
         || reason == SSL_R_PACKET_LENGTH_TOO_LONG || reason == SSL_R_UNKNOWN_PROTOCOL;
}

}  // namespace

result<tls_context> client_tls(const std::string& ca_file, bool verify_peer) {
  auto made = std::make_shared<ssl::context>(ssl::context::tls_client);
  error_code ec;
  made->set_options(no_old_versions, ec);
  made->set_verify_mode(verify_peer ? ssl::verify_peer : ssl::verify_none, ec);
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

std::string explain_handshake(const error_code& ec, SSL* tls, const std::string& host) {
  if (auto verdict = SSL_get_verify_result(tls); verdict != X509_V_OK)
    return "TLS: " + explain_verification(verdict, host);
  if (is_not_tls(ec))
    return "TLS: the server does not speak TLS on this port; use http:// or another port";
  if (ec == boost::asio::error::eof || ec == ssl::error::stream_truncated
      || ec == boost::asio::error::connection_reset)
    return "TLS: the server closed the connection during the handshake";
  return "TLS: the handshake failed: " + ec.message();
}

}  // namespace troupe
