#pragma once
// Rare or large state of a value, apart from it and made when it is needed.

#include <memory>
#include <utility>

namespace troupe {

/// A value behind a pointer, or none. A copy is deep.
template <class T>
class boxed {
public:
  boxed() = default;
  boxed(const boxed& x) : value_{x.value_ ? std::make_unique<T>(*x.value_) : nullptr} {}
  boxed(boxed&&) noexcept = default;
  boxed& operator=(boxed x) noexcept {
    value_.swap(x.value_);
    return *this;
  }
  ~boxed() = default;

  /// Makes it where there is none.
  [[nodiscard]] T& made() {
    if (!value_)
      value_ = std::make_unique<T>();
    return *value_;
  }

  [[nodiscard]] T* get() noexcept { return value_.get(); }
  [[nodiscard]] const T* get() const noexcept { return value_.get(); }

  void reset() noexcept { value_.reset(); }

private:
  std::unique_ptr<T> value_;
};

}  // namespace troupe
