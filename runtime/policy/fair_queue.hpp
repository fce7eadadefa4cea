#pragma once
// Calls that wait for one endpoint, so that no submitter can starve another.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Who submits calls: a batch, a session, another program's job.
struct job_share {
  std::uint64_t job = 0;
  double weight = 1;  ///< against the other jobs' that wait; more than 0
};

/// Jobs get turns in proportion to their weights, by the cost of what they take; a job's own calls
/// go in order. A job that had nothing waiting does not save up turns.
/// Source  P. Goyal et al., "Start-time Fair Queueing" (SIGCOMM 1996): the start tags here.
/// Cost    O(log jobs) for each operation.
class fair_queue {
public:
  /// The last of its job, or (`front`) its first.
  void push(job_share from, std::uint64_t call, bool front);

  [[nodiscard]] bool empty() const { return turns_.empty(); }
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Whose turn it is. Not when empty.
  [[nodiscard]] std::uint64_t next() const;

  /// Takes it out. `cost` is what it takes of the endpoint; 0 for one that is not sent.
  void pop(double cost);

private:
  struct line {
    std::deque<std::uint64_t> calls;
    double weight = 1;
  };
  struct turn {
    double start = 0;
    std::uint64_t order = 0;
    std::uint64_t job = 0;
  };
  static bool later(const turn& a, const turn& b) {
    return a.start != b.start ? a.start > b.start : a.order > b.order;
  }

  std::unordered_map<std::uint64_t, line> lines_;    ///< of the jobs with calls
  std::vector<turn> turns_;                          ///< a heap: one of each of these
  std::unordered_map<std::uint64_t, double> ended_;  ///< finish tags of jobs that ran empty
  double clock_ = 0;
  std::uint64_t order_ = 0;
  std::size_t size_ = 0;
};

}  // namespace troupe
