#include "runtime/host/text_file.hpp"

#include "runtime/eval/read_file.hpp"

namespace troupe {

result<std::string> read_text(const std::string& path, const std::string& what) {
  constexpr std::size_t longest = 1u << 30;
  auto text = read_whole_file(path, longest, pipes::read_to_their_end);
  if (!text)
    return fail(text.error().code, what + ": " + text.error().detail);
  return text;
}

}  // namespace troupe
