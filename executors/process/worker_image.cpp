#include "executors/process/worker_image.hpp"

#include "executors/worker_source.hpp"

#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace troupe::process {
namespace {

/// Reads the image by pread, since all workers share the file's offset. Mends the environment, as
/// python3 may be a script that sets variables of its own; the interpreter's programs come first.
constexpr const char* boot = R"(
import os, sys
if sys.version_info < (3, 10):
    sys.exit("Python 3.10 or newer is needed; this is " + sys.version.split()[0])
sys.path.remove("")
for name in set(os.environ) - {"HOME", "LANG", "PATH", "TMPDIR"}:
    del os.environ[name]
os.environ["PATH"] = os.path.dirname(sys.executable) + ":/usr/local/bin:/usr/bin:/bin"
os.set_inheritable(3, False)
_, work, frame_bytes = sys.argv
sys.argv = [""]
image, at = os.pread(4, os.fstat(4).st_size, 0), 0
os.close(4)
while at < len(image):
    name, size = image[at:image.index(b"\n", at)].decode().split()
    at = image.index(b"\n", at) + 1
    sys.modules[name] = module = type(sys)(name)
    exec(compile(image[at:at + int(size)], f"<{name}>", "exec"), module.__dict__)
    at += int(size)
sys.modules["troupe_worker"].serve(int(frame_bytes), work)
)";

error system_error(const char* what) {
  auto number = errno;
  return {errc::unavailable, std::string{what} + ": " + errno_text(number)};
}

}  // namespace

result<unique_fd> make_worker_image() {
  std::string image;
  for (const auto& m : worker_modules) {
    std::string_view source{m.source};
    image += std::string{m.name} + " " + std::to_string(source.size()) + "\n";
    image += source;
  }
  unique_fd file{::memfd_create("troupe-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!file)
    return fail(system_error("a memory file for the worker"));
  if (::write(file.get(), image.data(), image.size()) != static_cast<ssize_t>(image.size())
      || ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
           != 0)
    return fail(system_error("fill the worker's memory file"));
  return file;
}

std::vector<std::string> worker_command(const std::string& python,
                                        const std::string& work_directory,
                                        std::size_t frame_bytes) {
  return {
    python, "-s", "-B", "-X", "utf8", "-c", boot, work_directory, std::to_string(frame_bytes)};
}

}  // namespace troupe::process
