#pragma once
// What a provider says when it gives no reply, and what follows from it. One place for all of them.

#include "runtime/core/json.hpp"
#include "runtime/model/codec.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// An error object as servers send it, wherever it stands.
struct server_error {
  std::string message;
  std::string code;     ///< code, or else type; text even where the server sent a number
  unsigned status = 0;  ///< the HTTP status that the code stands for; 0: none is known
};

/// Reads {"error": {...} | "text"}, [{"error": ...}], {"message"}, {"detail"}; empty members when
/// there is none of these.
[[nodiscard]] server_error read_error(const json& body);

/// True for a body that is an error and no reply: {"error": not null}, or an array of such.
[[nodiscard]] bool is_error(const json& body);

/// An error object inside a 200, in one piece or in mid-stream (`where` says which): of the class
/// that its code names, else bad_reply.
[[nodiscard]] model_failure failure_inside(const json& holder, std::string_view where);

/// What a status other than 2xx means, with one line for the user. Header names are lower case.
[[nodiscard]] model_failure classify_status(unsigned status, const header_list& headers,
                                            std::string_view body);

}  // namespace troupe
