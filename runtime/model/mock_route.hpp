#pragma once
// Which resource of which provider a request is for.

#include "runtime/model/mock_wire.hpp"

#include <cstdint>
#include <string_view>

namespace troupe {

enum class mock_resource : std::uint8_t { none, chat, responses, messages, models };

struct mock_route {
  mock_resource what = mock_resource::none;
  std::string_view rest{};  ///< models: the one that is asked for
};

/// Reads path and query. The bases of the providers, as users write them into a base URL, may stand
/// before the resource, or none.
[[nodiscard]] mock_route mock_route_of(std::string_view target);

/// How the request is answered, unknown paths included: errors have a provider's shape too.
[[nodiscard]] const mock_wire& mock_wire_of(mock_resource what, const header_list& headers);

/// True when some key came, whatever it is worth.
[[nodiscard]] bool has_key(const header_list& headers);

}  // namespace troupe
