#pragma once
// A folder that goes away with its test, and entries to put into journals.

#include "runtime/journal/journal.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace troupe::test {

class temp_folder {
public:
  temp_folder() {
    auto name = (std::filesystem::temp_directory_path() / "troupe_journal_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::runtime_error{"mkdtemp: " + errno_text(errno)};
    path_ = name;
  }
  ~temp_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temp_folder(const temp_folder&) = delete;
  temp_folder& operator=(const temp_folder&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }

private:
  std::filesystem::path path_;
};

inline journal_event event_of(std::uint64_t run, std::uint32_t seq, std::string kind = "action",
                              std::string payload = "{}") {
  return {run_id{run}, seq, 1'000 + seq, std::move(kind), std::move(payload)};
}

inline run_result result_of(std::uint64_t run, std::string sample, std::uint32_t epoch = 1) {
  run_result r;
  r.run = run_id{run};
  r.sample_id = std::move(sample);
  r.epoch = epoch;
  r.end = "success";
  r.answer = "answer of run " + std::to_string(run);
  return r;
}

}  // namespace troupe::test
