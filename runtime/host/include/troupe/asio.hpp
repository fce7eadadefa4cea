#pragma once
// Runs as Boost.Asio operations: co_await troupe::async_run(rt, agent, "task", use_awaitable).
// Header-only; the only header of ours that shows Boost.

#include <troupe/runtime.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/system_executor.hpp>

#include <memory>
#include <string>
#include <utility>

namespace troupe {
namespace detail {

struct start_run {
  template <class Handler>
  void operator()(Handler handler, runtime* where, agent who, std::string task,
                  submit_options how) const {
    namespace asio = boost::asio;
    auto slot = asio::get_associated_cancellation_slot(handler);
    // The handler's executor counts the run as work: its context does not end before.
    auto work = asio::prefer(asio::get_associated_executor(handler, asio::system_executor{}),
                             asio::execution::outstanding_work.tracked);
    // A std::function is copied, and handlers need not be.
    auto shared = std::make_shared<Handler>(std::move(handler));
    auto started = where->submit(who, std::move(task), std::move(how));
    if (slot.is_connected())
      slot.assign([started](asio::cancellation_type) { started.cancel("cancelled by its slot"); });
    started.on_end([shared, work, slot](const run_outcome& outcome) {
      asio::post(work, [shared, slot, outcome]() mutable {
        slot.clear();
        std::move (*shared)(std::move(outcome));
      });
    });
  }
};

}  // namespace detail

/// Submits a run and completes with its outcome: signature void(run_outcome). A run that failed has
/// an outcome that says so; nothing is thrown. The handler is called on its associated executor,
/// never before this returns. Emitting cancellation (of any type) cancels the run, which then ends
/// as "cancelled". `where` must outlive the start of the operation, the executor's context its end.
template <class CompletionToken>
auto async_run(runtime& where, const agent& who, std::string task, CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(run_outcome)>(
    detail::start_run{}, token, &where, who, std::move(task), submit_options{});
}

/// The same with events, files or a gate.
template <class CompletionToken>
auto async_run(runtime& where, const agent& who, std::string task, submit_options how,
               CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(run_outcome)>(
    detail::start_run{}, token, &where, who, std::move(task), std::move(how));
}

}  // namespace troupe
