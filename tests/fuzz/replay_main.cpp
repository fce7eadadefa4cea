// Runs a fuzz target over the files of a folder: for compilers that have no fuzzer, and under
// their sanitizers.

#include "tests/fuzz/fuzz_support.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  std::size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator{argv[i]}) {
      std::ifstream in{entry.path(), std::ios::binary};
      std::string bytes{std::istreambuf_iterator<char>{in}, {}};
      std::printf("%s: %zu bytes\n", entry.path().filename().c_str(), bytes.size());
      std::fflush(stdout);  // the last line names the file that ends us
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++files;
    }
  }
  return files > 0 ? 0 : 1;
}
