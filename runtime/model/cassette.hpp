#pragma once
// A cassette: requests and what they were answered with, in one file that people can read, edit and
// pass on. It stands in for a model offline. Pure: bytes in, bytes out.
//
// JSON Lines. The first line is {"troupe_cassette": 1}; each further one is an exchange:
// {"where": "/chat/completions", "request": {...}, "reply": {...}}, or "failure" for "reply".

#include "runtime/model/request_identity.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// How a request finds what was recorded.
enum class cassette_match : std::uint8_t {
  /// The same request: path and every member. Asked again, the next that was recorded for it; when
  /// they are used up, none is left.
  exact,
  /// The same conversation: what the messages say, without the order of members, white space, ids,
  /// the model or its settings. Asked again, the recorded ones in turn, over and over.
  loose
};

/// The file's first line, with its line feed.
[[nodiscard]] std::string cassette_head();

/// One exchange as a line, without secrets: `known` ones and those that look like one. The server's
/// address is no part of it, nor is how long the reply took.
[[nodiscard]] std::string cassette_line(const request_identity& request,
                                        const model_outcome& outcome,
                                        const std::vector<std::string>& known);

/// Plays a cassette. Resource; one thread at a time.
class cassette_player {
public:
  /// `name` is for messages; `known` secrets were removed when it was recorded.
  /// Errors  corrupt: the line, and what is wrong with it; invalid_argument: a newer version.
  static result<std::unique_ptr<cassette_player>> load(std::string_view text,
                                                       const std::string& name, cassette_match how,
                                                       std::vector<std::string> known);
  virtual ~cassette_player() = default;

  /// What was recorded, with attempts 0. A miss is a failure of kind unknown whose detail shows
  /// where the nearest recorded request differs.
  [[nodiscard]] virtual model_outcome play(const request_identity& request) = 0;

  /// More secrets that were removed when it was recorded.
  virtual void hide(const std::vector<std::string>& secrets) = 0;

  /// Exchanges that it holds.
  [[nodiscard]] virtual std::size_t size() const = 0;
};

}  // namespace troupe
