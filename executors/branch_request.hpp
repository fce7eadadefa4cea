#pragma once
// What fork() asks of two workers: one sends copies of its session, the other goes on as one.

#include "executors/worker_request.hpp"

#include <functional>
#include <memory>

namespace troupe {

using moved_fn = std::function<void(result<void>)>;

/// Asks a worker for `count` copies of its session, through pipes that it is sent otherwise. By
/// `done`: denied (something cannot be copied, and what), timeout (none by `until`, and the worker
/// was killed), unavailable (it died).
[[nodiscard]] std::unique_ptr<worker_request> make_branch_request(std::size_t count,
                                                                  time_point until, moved_fn done);

/// Asks a fresh worker to go on as the one whose copy comes through its pipe. By `done`: as above;
/// over_budget (its memory or disk is too small).
[[nodiscard]] std::unique_ptr<worker_request> make_take_request(time_point until, moved_fn done);

}  // namespace troupe
