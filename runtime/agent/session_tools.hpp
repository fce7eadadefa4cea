#pragma once
// How the named agents of one session speak with each other: as tools, for their models.

#include "runtime/core/error.hpp"
#include "runtime/model/tool_spec.hpp"

#include <string>
#include <vector>

namespace troupe {

/// One named agent of a session, as the others see it.
struct session_member_card {
  std::string name{};
  std::string description{};
  std::vector<std::string> topics{};  ///< that it reads
};

/// The tools of the member `self`: send_message, ask_agent and hand_off, each `to` one of the
/// others, and publish to one of the session's `topics`. Nothing that nobody could hear.
[[nodiscard]] std::vector<tool_spec> session_tools(const std::vector<session_member_card>& members,
                                                   const std::string& self);

/// Errors  invalid_argument: a name that is none or is there twice; fewer than two members.
[[nodiscard]] result<void> validate(const std::vector<session_member_card>& members);

}  // namespace troupe
