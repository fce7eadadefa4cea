#pragma once
// Replies that somebody else wrote: what the codecs' readers share.

#include "runtime/core/json.hpp"
#include "runtime/model/codec.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Of a reply's body, and of an event's data.
inline constexpr json_limits reply_limits{.max_bytes = 64u << 20, .max_depth = 64};

/// One line: what was wrong with the reply.
[[nodiscard]] tl::unexpected<model_failure> bad_reply(std::string detail);

/// A reply's body as an object that holds no error.
/// Errors  bad_reply: empty, a web page, cut short, not JSON, not an object; else what an error
///         inside it says.
[[nodiscard]] tl::expected<json, model_failure> read_body(std::string_view body);

/// The same of one event's data, whose lone halves of surrogate pairs are U+FFFD.
[[nodiscard]] tl::expected<json, model_failure> read_event_data(std::string_view data);

/// A member, or null when `object` has none or is no object.
[[nodiscard]] const json& member(const json& object, std::string_view name);

/// A count of tokens. One that no reply can have is a server's mistake and would spoil every sum:
/// 0.
[[nodiscard]] std::uint64_t count_of(const json& number);
[[nodiscard]] std::uint64_t count_of(double number);

/// A string, an array of parts ({"text":...} or strings), or nothing.
[[nodiscard]] std::string text_of(const json& content);

/// A call's arguments as text: a string as it is, an object as JSON, anything else as "{}".
[[nodiscard]] std::string arguments_text(const json& arguments);

/// `id`, or "call_<position>" when the server gave none.
[[nodiscard]] std::string call_id_or_position(std::string id, std::size_t position);

}  // namespace troupe
