#pragma once
// Parts that benches share: a CPU meter, percentiles, an executor without a sandbox, a batch run.

#include "executors/executor.hpp"
#include "runtime/host/engine.hpp"
#include "runtime/model/mock_model.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::measure {

/// User and system CPU of the whole process so far.
[[nodiscard]] micros process_cpu();

/// Resident bytes now, and the most so far.
[[nodiscard]] std::uint64_t resident_bytes();
[[nodiscard]] std::uint64_t peak_resident_bytes();

/// The p-th quantile (0..1) by nearest rank. `values` is sorted by it; 0 when empty.
[[nodiscard]] double quantile(std::vector<double>& values, double p);

/// Answers every snippet at once: 1 KB of logs, or a final answer when the code calls it. What the
/// loop costs without any sandbox.
[[nodiscard]] std::shared_ptr<executor> make_instant_executor(std::size_t observation_bytes);

struct load {
  std::size_t runs = 0;
  std::size_t width = 0;
  std::uint32_t turns = 10;
};

struct load_result {
  std::uint64_t turns = 0;
  micros cpu{0};
  micros wall{0};
  std::uint64_t failed = 0;
};

/// Of an engine with room for so many runs at once.
[[nodiscard]] engine_options wide_options(std::size_t width, endpoint_maker model);

/// Runs a batch of equal tasks on `host` and measures it.
[[nodiscard]] result<load_result> run_load(engine& host, const load& how);

/// Replies that make a run take `turns` turns: all but the last print, the last answers.
[[nodiscard]] std::string printing_reply();
[[nodiscard]] std::string answering_reply();

/// Microseconds as "12.3 us" and as "0.01 ms".
[[nodiscard]] std::string us(double value);
[[nodiscard]] std::string ms(double value_us);

/// Microseconds of steady time since then.
[[nodiscard]] double since_us(time_point from);

/// "label ........ figure   (target ...)".
[[nodiscard]] std::string line(std::string_view label, const std::string& figure,
                               std::string_view target = {});

}  // namespace troupe::measure
