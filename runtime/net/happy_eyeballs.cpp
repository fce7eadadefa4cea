#include "runtime/net/happy_eyeballs.hpp"

namespace troupe {
namespace {

constexpr std::size_t slot(address_family f) noexcept {
  return static_cast<std::size_t>(f);
}

constexpr address_family other(address_family f) noexcept {
  return f == address_family::v6 ? address_family::v4 : address_family::v6;
}

}  // namespace

void happy_eyeballs::found(address_family family, std::size_t addresses, time_point now) {
  families_[slot(family)] = {addresses, 0, true, now};
}

void happy_eyeballs::attempt_failed() {
  --running_;
  failed_since_start_ = true;
}

const happy_eyeballs::candidates& happy_eyeballs::of(address_family f) const noexcept {
  return families_[slot(f)];
}

/// The family whose turn it is, or the one that has addresses left.
std::optional<address_family> happy_eyeballs::pick() const noexcept {
  if (started_ >= limits_.most)
    return std::nullopt;
  auto turn = other(last_);
  if (of(turn).any())
    return turn;
  return of(last_).any() ? std::optional{last_} : std::nullopt;
}

/// When the next attempt may start.
time_point happy_eyeballs::earliest() const noexcept {
  if (started_ > 0)
    return running_ == 0 || failed_since_start_ ? last_start_
                                                : after(last_start_, limits_.attempt_delay);
  const auto& v6 = of(address_family::v6);
  const auto& v4 = of(address_family::v4);
  return v6.known ? v6.since : after(v4.since, limits_.resolution_delay);
}

happy_eyeballs::step happy_eyeballs::next(time_point now) {
  auto family = pick();
  if (!family) {
    auto over = running_ == 0
                && (started_ >= limits_.most
                    || (of(address_family::v6).known && of(address_family::v4).known));
    return over ? step{lost{}} : step{pause{}};
  }
  if (auto when = earliest(); when > now)
    return pause{when};
  last_ = *family;
  last_start_ = now;
  failed_since_start_ = false;
  ++started_;
  ++running_;
  return attempt{*family, families_[slot(*family)].used++};
}

}  // namespace troupe
