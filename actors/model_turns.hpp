#pragma once
// A run's side of its model: asked by leave of the hooks and the gate, asked again while the client
// is being restarted.

#include "actors/run_core.hpp"

#include <memory>
#include <vector>

namespace troupe {

/// A part of a run's actor. Answers reach its loop as model_replied or model_failed.
class model_turns {
public:
  explicit model_turns(run_core& core) : core_{core}, paused_{core.run.paused} {}

  void begin(ask_model x);

  void on_gate(run_pace how);

  /// Pieces of a reply that is on its way.
  void on_pieces(const std::vector<model_delta>& pieces);

  /// Nobody waits for the reply any more.
  void abandon();

private:
  void ask_by_leave(model_request request);
  void ask_as_allowed(model_request request);
  void ask(model_request request, std::uint32_t tries = 0);
  void ask_later(model_request request, std::uint32_t tries, const std::string& why);
  void refuse(const std::string& why);
  void on_answer(model_answer x);

  run_core& core_;
  model_request open_ask_;
  std::unique_ptr<ask_model> held_;  // behind the gate
  time_point asked_{};
  std::uint32_t steps_ = 0;  // that may pass the gate though it is shut
  bool paused_;
  bool asking_ = false;
};

}  // namespace troupe
