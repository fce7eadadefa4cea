#pragma once
// Certificates made on the spot, with the openssl program.

#include "runtime/net/http.hpp"
#include "tests/net/http_fixture.hpp"

#include <string>

namespace troupe::test {

/// A CA, and keys signed by it.
class authority {
public:
  authority();

  [[nodiscard]] std::string ca_file() const { return dir_.file("ca.pem"); }
  [[nodiscard]] std::string file(const std::string& name) const { return dir_.file(name); }

  /// `names` as OpenSSL's subjectAltName, e.g. "DNS:localhost,IP:127.0.0.1".
  http_server::options issue(const std::string& name, const std::string& names,
                             const std::string& validity = "-days 2");

  /// One that is valid from tomorrow on.
  http_server::options issue_for_tomorrow(const std::string& name, const std::string& names);

  /// One that nobody else has signed.
  http_server::options self_signed(const std::string& name, const std::string& names);

private:
  void make_request(const std::string& name, const std::string& names);
  [[nodiscard]] http_server::options files(const std::string& name) const;
  void run(const std::string& command) const;

  temp_dir dir_;
};

/// The one that most tests share.
authority& ca();

}  // namespace troupe::test
