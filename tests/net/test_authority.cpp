#include "tests/net/test_authority.hpp"

#include <cstdlib>
#include <ctime>

namespace troupe::test {
namespace {

constexpr const char* new_key = " -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

/// As `openssl ca` takes it.
std::string asn1_time(std::time_t when) {
  char text[16];
  std::tm utc{};
  ::gmtime_r(&when, &utc);
  std::strftime(text, sizeof text, "%Y%m%d%H%M%SZ", &utc);
  return text;
}

}  // namespace

authority::authority() {
  run("openssl req -x509" + std::string{new_key}
      + " -days 2 -subj '/CN=test CA' -keyout ca.key -out ca.pem");
}

http_server::options authority::issue(const std::string& name, const std::string& names,
                                      const std::string& validity) {
  make_request(name, names);
  run("openssl x509 -req -in " + name + ".csr -CA ca.pem -CAkey ca.key -CAcreateserial " + validity
      + " -extfile " + name + ".ext -out " + name + ".pem");
  return files(name);
}

http_server::options authority::issue_for_tomorrow(const std::string& name,
                                                   const std::string& names) {
  constexpr std::time_t day = 86'400;
  make_request(name, names);
  run("mkdir -p new && : > index && echo 99 > serial");
  run("printf '[ca]\\ndefault_ca=d\\n[d]\\nnew_certs_dir=new\\ndatabase=index\\nserial=serial\\n"
      "policy=p\\ndefault_md=sha256\\n[p]\\ncommonName=supplied\\n' > ca.conf");
  auto now = std::time(nullptr);
  run("openssl ca -batch -notext -config ca.conf -cert ca.pem -keyfile ca.key -in " + name
      + ".csr -extfile " + name + ".ext -startdate " + asn1_time(now + day) + " -enddate "
      + asn1_time(now + 2 * day) + " -out " + name + ".pem");
  return files(name);
}

http_server::options authority::self_signed(const std::string& name, const std::string& names) {
  run("openssl req -x509" + std::string{new_key} + " -days 2 -subj /CN=" + name
      + " -addext subjectAltName=" + names + " -keyout " + name + ".key -out " + name + ".pem");
  return files(name);
}

void authority::make_request(const std::string& name, const std::string& names) {
  run("openssl req" + std::string{new_key} + " -subj /CN=" + name + " -keyout " + name
      + ".key -out " + name + ".csr");
  run("echo subjectAltName=" + names + " > " + name + ".ext");
}

http_server::options authority::files(const std::string& name) const {
  return {.certificate_file = dir_.file(name + ".pem"), .key_file = dir_.file(name + ".key")};
}

void authority::run(const std::string& command) const {
  auto status = std::system(("cd '" + dir_.file("") + "' && " + command + " 2>> log").c_str());
  INFO(command);
  REQUIRE(status == 0);
}

authority& ca() {
  static authority made;
  return made;
}

}  // namespace troupe::test
