#include "runtime/net/address_book.hpp"

#include "runtime/net/reactor.hpp"

#include <utility>

namespace troupe {
void address_book::find(const std::string& name, address_family family, answer_fn then) {
  if (!names_)
    return;
  key which{name, family};
  auto& e = entries_[which];
  if (e.good_until > io_.now()) {
    then(e.known);
    return;
  }
  e.waiting.push_back(std::move(then));
  if (e.waiting.size() > 1)
    return;
  names_->look_up(name, family, [&io = io_, weak = weak_from_this(), which](answer got) {
    io.post([weak, which, got = std::move(got)] {
      if (auto self = weak.lock())
        self->found(which, got);
    });
  });
}

void address_book::found(const key& which, answer got) {
  auto& e = entries_[which];
  auto waiting = std::exchange(e.waiting, {});
  if (got) {
    e.known = *got;
    e.good_until = after(io_.now(), keep_);
  } else if (got.error().code == errc::unavailable && !e.known.empty()) {
    got = e.known;
  } else {
    entries_.erase(which);
  }
  for (auto& then : waiting)
    then(got);
}

void address_book::close() {
  names_ = nullptr;
  entries_.clear();
}

}  // namespace troupe
