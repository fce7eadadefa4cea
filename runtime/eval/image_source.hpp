#pragma once
// Images as models are sent them: an https: URL, or the bytes in a data: URL.

#include "runtime/core/error.hpp"

#include <string>
#include <string_view>

namespace troupe {

constexpr std::size_t max_image_bytes = 20u << 20;

/// True for what may go to a provider as it is: an https: URL, or an image as a data: URL.
[[nodiscard]] bool is_image_url(std::string_view text);

/// The data: URL of an image file's bytes, whose kind its first bytes tell.
/// Errors  invalid_argument: none of PNG, JPEG, GIF, WebP, which is what providers take.
/// Source  W3C, "PNG", 5.2; ITU T.81, B.1; GIF89a, 17; RFC 9649, 2.3.
[[nodiscard]] result<std::string> image_url_of(std::string_view bytes);

/// The image that a user names: such a URL, else a file. Blocking.
/// Errors  read_whole_file's and image_url_of's, with the name.
[[nodiscard]] result<std::string> image_from(const std::string& name);

}  // namespace troupe
