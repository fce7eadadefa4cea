#pragma once
// Where a model answers: one try of one call, asynchronously. No retries, no queue: those are
// model_client's.

#include "runtime/core/time.hpp"
#include "runtime/model/chat.hpp"
#include "runtime/model/codec.hpp"
#include "runtime/model/mock_model.hpp"
#include "runtime/net/http.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// Resource. Thread-safe. `done` is called exactly once, on any thread, possibly before `ask`
/// returns.
class endpoint {
public:
  using done_fn = std::function<void(model_outcome)>;
  using seen_fn = std::function<void(std::vector<model_delta>)>;
  using ticket = std::uint64_t;

  virtual ~endpoint() = default;

  /// With `seen`, the reply comes as a stream: its pieces go there, in order, before `done`.
  virtual ticket ask(const model_request& request, time_point deadline, seen_fn seen,
                     done_fn done) = 0;

  /// Ends the try: its socket is closed and `done` gets failure_class::cancelled. A finished
  /// ticket is ignored.
  virtual void cancel(ticket which) = 0;

  [[nodiscard]] virtual message_encoder encoder() const = 0;

  /// It has no server that could be overloaded: as many tries at once as are wanted, from the
  /// first.
  [[nodiscard]] virtual bool in_process() const { return false; }
};

struct http_endpoint_options {
  url base;                         ///< e.g. https://api.openai.com/v1
  std::string key{};                ///< empty: no authorisation header
  header_list headers{};            ///< added to every request
  millis silence{millis{120'000}};  ///< longest wait from one piece of a stream to the next
};

/// An endpoint over HTTP that speaks `format`. `client` must outlive it.
[[nodiscard]] std::shared_ptr<endpoint> make_http_endpoint(http_client& client,
                                                           std::shared_ptr<const codec> format,
                                                           http_endpoint_options options);

/// The mock/ provider: a script that answers after its drawn latency, measured by `clock`.
[[nodiscard]] std::shared_ptr<endpoint> make_mock_endpoint(mock_script script, timers& clock,
                                                           std::uint64_t seed);

}  // namespace troupe
