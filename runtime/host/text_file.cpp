#include "runtime/host/text_file.hpp"

#include <cerrno>
#include <fstream>
#include <sstream>

namespace troupe {

result<std::string> read_text(const std::string& path, const std::string& what) {
  std::ifstream in{path, std::ios::binary};
  if (!in)
    return fail(errc::not_found, what + " '" + path + "' cannot be read: " + errno_text(errno));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace troupe
