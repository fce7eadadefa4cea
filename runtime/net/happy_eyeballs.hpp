#pragma once
// Which of a host's addresses is tried when. No socket, no clock.

#include "runtime/core/time.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

namespace troupe {

enum class address_family : std::uint8_t { v6, v4 };

inline constexpr std::array<address_family, 2> both_families{address_family::v6,
                                                             address_family::v4};

/// One race of connection attempts: IPv6 first, the families taking turns, a new attempt when the
/// last one failed or has had its time, the earlier ones still running. The caller ends the race
/// when an attempt has connected.
/// Source  RFC 8305, sections 3 to 5 and 8.
class happy_eyeballs {
public:
  struct limits {
    millis resolution_delay{50};  ///< IPv4's addresses wait so long for IPv6's
    millis attempt_delay{250};    ///< from one attempt's start to the next
    std::size_t most = 16;        ///< attempts in all
  };

  /// Start one: the family's address of this index.
  struct attempt {
    address_family family = address_family::v6;
    std::size_t index = 0;
    bool operator==(const attempt&) const = default;
  };
  /// Nothing to do until then, or until the next event; `never`: for an event alone.
  struct pause {
    time_point until = never;
    bool operator==(const pause&) const = default;
  };
  /// No address is left and no attempt is running.
  struct lost {
    bool operator==(const lost&) const = default;
  };
  using step = std::variant<attempt, pause, lost>;

  happy_eyeballs() = default;
  explicit happy_eyeballs(limits l) : limits_{l} {}

  /// A family's lookup has ended with so many addresses; 0 when it failed. Once for each family.
  void found(address_family family, std::size_t addresses, time_point now);

  /// One of the attempts that were started has failed.
  void attempt_failed();

  /// What to do at `now`. To be asked again after an attempt, an event, and at a pause's end.
  [[nodiscard]] step next(time_point now);

private:
  struct candidates {
    std::size_t count = 0;
    std::size_t used = 0;
    bool known = false;
    time_point since{};

    [[nodiscard]] bool any() const noexcept { return used < count; }
  };

  [[nodiscard]] const candidates& of(address_family f) const noexcept;
  [[nodiscard]] std::optional<address_family> pick() const noexcept;
  [[nodiscard]] time_point earliest() const noexcept;

  limits limits_;
  std::array<candidates, 2> families_{};
  std::size_t started_ = 0;
  std::size_t running_ = 0;
  bool failed_since_start_ = false;
  time_point last_start_{};
  address_family last_ = address_family::v4;
};

}  // namespace troupe
