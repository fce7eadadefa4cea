#pragma once
// A name_resolver whose answers a test decides.

#include "runtime/net/name_resolver.hpp"

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace troupe::test {

class fixed_names final : public name_resolver {
public:
  using answer = result<addresses>;

  void say(const std::string& name, address_family family, answer what) {
    std::lock_guard lock{mutex_};
    answers_.insert_or_assign({name, family}, std::move(what));
  }

  /// A name with IPv4 addresses alone; they are not looked at, so that loopback does for any.
  void say(const std::string& name, std::initializer_list<const char*> first,
           std::initializer_list<const char*> second) {
    say(name, address_family::v6, parsed(first));
    say(name, address_family::v4, parsed(second));
  }

  /// Names that nothing is known of get no answer at all.
  void look_up(const std::string& name, address_family family, answer_fn then) override {
    std::lock_guard lock{mutex_};
    ++asked_;
    if (auto it = answers_.find({name, family}); it != answers_.end())
      then(it->second);
    else
      unanswered_.push_back(std::move(then));
  }

  [[nodiscard]] int asked() const {
    std::lock_guard lock{mutex_};
    return asked_;
  }

private:
  static addresses parsed(std::initializer_list<const char*> texts) {
    addresses out;
    for (const auto* text : texts)
      out.push_back(boost::asio::ip::make_address(text));
    return out;
  }

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, address_family>, answer> answers_;
  std::vector<answer_fn> unanswered_;
  int asked_ = 0;
};

}  // namespace troupe::test
