#include "runtime/eval/image_source.hpp"

#include "runtime/core/base64.hpp"
#include "runtime/eval/data_uri.hpp"
#include "runtime/eval/read_file.hpp"

namespace troupe {
namespace {

using namespace std::string_view_literals;

/// Empty for bytes of another kind.
std::string_view image_type(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1A\n"sv))
    return "image/png";
  if (bytes.starts_with("\xFF\xD8\xFF"sv))
    return "image/jpeg";
  if (bytes.starts_with("GIF87a"sv) || bytes.starts_with("GIF89a"sv))
    return "image/gif";
  if (bytes.starts_with("RIFF"sv) && bytes.substr(0, 12).ends_with("WEBP"sv))
    return "image/webp";
  return {};
}

}  // namespace

bool is_image_url(std::string_view text) {
  return text.starts_with("https://") || (text.starts_with("data:image/") && is_data_uri(text));
}

result<std::string> image_url_of(std::string_view bytes) {
  auto type = image_type(bytes);
  if (type.empty())
    return fail(errc::invalid_argument,
                "is no image that models take; they take PNG, JPEG, GIF and WebP");
  return "data:" + std::string{type} + ";base64," + to_base64(bytes);
}

result<std::string> image_from(const std::string& name) {
  if (is_image_url(name))
    return name;
  auto bytes = read_whole_file(name, max_image_bytes, pipes::read_to_their_end);
  if (!bytes)
    return fail(bytes.error());
  auto url = image_url_of(*bytes);
  return url ? url : fail(url.error().code, "'" + name + "' " + url.error().detail);
}

}  // namespace troupe
