#pragma once
// OpenSSL as we want it, and its failures in words. Include from .cpp files of runtime/net only.

#include "runtime/core/error.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>

#include <memory>
#include <string>

namespace troupe {

using tls_context = std::shared_ptr<boost::asio::ssl::context>;

/// TLS 1.2 or later. `ca_file` is PEM; empty for the system's roots. Reads files: may block.
/// Errors  invalid_argument: the file cannot be used.
[[nodiscard]] result<tls_context> client_tls(const std::string& ca_file, bool verify_peer);

/// Errors  invalid_argument: which file, and why.
[[nodiscard]] result<tls_context> server_tls(const std::string& certificate_file,
                                             const std::string& key_file);

/// Asks for `host` (SNI) and, when `verify` is set, accepts only a certificate for that name or
/// address. False when OpenSSL refuses the name.
[[nodiscard]] bool expect_peer(SSL* tls, const std::string& host, bool verify);

/// Why a client's handshake with `host` failed, and the mend: denied for a certificate that was not
/// accepted, invalid_argument for a port without TLS, unavailable for what may pass.
[[nodiscard]] error explain_handshake(const boost::system::error_code& ec, SSL* tls,
                                      const std::string& host);

}  // namespace troupe
