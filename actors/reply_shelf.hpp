#pragma once
// Where replies are looked up before a model is asked, and kept afterwards: a cache, a cassette
// that is recorded, or one that is played. Plain C++; its actor is reply_keeper.

#include "runtime/journal/reply_cache.hpp"
#include "runtime/model/cassette.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Resource. Every call may wait for the disk; one thread at a time.
class reply_shelf {
public:
  virtual ~reply_shelf() = default;

  /// What stands there for the request, of several replies to it the one of number `draw`. Nothing:
  /// the model is to be asked.
  [[nodiscard]] virtual std::optional<model_outcome> find(const request_identity& request,
                                                          std::uint32_t draw) = 0;

  virtual void keep(const request_identity& request, std::uint32_t draw,
                    const model_outcome& outcome) = 0;

  /// Makes durable what was kept.
  virtual void flush() = 0;

  /// More secrets that must not get into a file that is handed on. Before requests that hold them.
  virtual void hide(const std::vector<std::string>& /*secrets*/) {}
};

/// The same for several threads, which wait for each other.
[[nodiscard]] std::unique_ptr<reply_shelf> make_locked_shelf(std::unique_ptr<reply_shelf> shelf);

/// What a cache is used for.
enum class cache_use : std::uint8_t {
  off,
  on,      ///< look up and keep
  read,    ///< look up only
  refresh  ///< keep only: what stands there is replaced
};

/// Keeps replies, no failures, none that a content filter has ended, and none of a fallback: what
/// the model asked for would have said is not known. An entry older than `max_age` is not used (0:
/// any age is). When the disk fails it is said once, in the log, and the models are asked.
[[nodiscard]] std::unique_ptr<reply_shelf>
make_cache_shelf(std::unique_ptr<reply_cache> store, cache_use use, std::chrono::seconds max_age);

/// Records every reply and failure into a new file, a fallback's reply too: it is what happened to
/// that request, and the reply names its model. `secrets` are kept out of it.
/// Errors  denied: the file is there already, or cannot be made.
[[nodiscard]] result<std::unique_ptr<reply_shelf>>
make_recording_shelf(const std::string& path, std::vector<std::string> secrets);

/// Plays a cassette: no model is asked, a miss is a failure.
/// Errors  not_found, denied; cassette_player::load's.
[[nodiscard]] result<std::unique_ptr<reply_shelf>>
make_playing_shelf(const std::string& path, cassette_match how, std::vector<std::string> secrets);

}  // namespace troupe
