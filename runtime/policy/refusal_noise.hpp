#pragma once
// Tells refusals that come by chance, whatever the rate, from those of a limit. A value.

#include <cstdint>

namespace troupe {

/// What one refusal says.
enum class refusal_meaning : std::uint8_t {
  chance,   ///< nothing follows from it
  limit,    ///< a limit, as far as one can tell
  unclear,  ///< the same, and a trial has begun: half the rate from now on
  found     ///< chance, as the trial has just shown: the rate before it all was right
};

/// A limit that is kept to refuses nothing. So when single refusals go on at a rate that went well
/// before, half of that rate is tried: what is refused then too has other causes, and its share is
/// the server's noise. From then on only refusals that come thicker than that mean a limit.
/// Cost    O(1) per call.
/// Source  Page, "Continuous Inspection Schemes", Biometrika 41 (1954): the cumulative sum.
class refusal_noise {
public:
  /// True: with it a trial ends that found nothing.
  bool sent();

  /// The request of that number, in the order of sending from 1, was refused. `unexpected`: at a
  /// rate that went well before.
  [[nodiscard]] refusal_meaning refused(std::uint64_t number, bool unexpected);

  /// One that was under way when the last one was judged.
  void refused_with_it() { ++refusals_; }

  [[nodiscard]] bool on_trial() const { return on_trial_; }

  /// Refusals have come at a rate that went well before.
  [[nodiscard]] bool suspects() const { return unexpected_ > 0 && sent_ > no_trial_; }

  /// Share of the requests that is refused by chance; 0: none that is known.
  [[nodiscard]] double share() const { return share_; }

private:
  void weigh_sent();
  void weigh_refused();
  [[nodiscard]] refusal_meaning suspect(bool unexpected);
  [[nodiscard]] refusal_meaning judge_trial(std::uint64_t number);
  [[nodiscard]] std::uint64_t trial_length() const;
  void begin_trial();
  void end_trial(bool found);
  void begin_anew();

  std::uint64_t sent_ = 0;
  std::uint64_t since_ = 0;     ///< sent before the suspicion began
  std::uint64_t refusals_ = 0;  ///< from then on
  std::uint32_t unexpected_ = 0;

  std::uint64_t trial_end_ = 0;     ///< the number of its last request
  std::uint64_t no_trial_ = 0;      ///< up to that number none is worth its cost
  std::uint64_t last_refused_ = 0;  ///< its number; that of the last request before the trial
  std::uint64_t trial_begin_ = 0;
  std::uint32_t in_trial_ = 0;  ///< refusals during it
  std::uint32_t in_row_ = 0;    ///< refusals one after the other
  std::uint32_t apart_ = 0;     ///< refusals with others between them that were not
  std::uint32_t failed_trials_ = 0;
  bool on_trial_ = false;

  double share_ = 0;
  double most_share_ = 0;
  double score_ = 0;  ///< evidence that more than `share_` is refused
};

}  // namespace troupe
