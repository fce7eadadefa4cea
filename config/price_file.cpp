#include "config/price_file.hpp"

#include "config/yaml_mapping.hpp"
#include "runtime/core/text.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <set>
#include <vector>

namespace troupe {

extern const std::string_view prices_text;

namespace {

constexpr std::string_view shipped_name = "the shipped price list";

class price_reader {
public:
  explicit price_reader(std::string where) : where_{std::move(where)} {}

  result<price_list> read(const YAML::Node& root) {
    if (!root.IsMap())
      return bad(root, "expected 'currency' and 'models'");
    price_list out;
    for (const auto& x : root) {
      auto key = x.first.as<std::string>("");
      if (key == "currency" && x.second.IsScalar())
        out.currency = x.second.Scalar();
      else if (key == "models" && x.second.IsMap())
        models_ = x.second;
      else
        return bad(x.first, fmt::format("unknown key '{}'{}", utf8_prefix(key, 80),
                                        did_you_mean(key, {"currency", "models"})));
    }
    if (auto read = read_models(out); !read)
      return fail(read.error());
    return out;
  }

private:
  result<void> read_models(price_list& out) {
    for (const auto& x : models_) {
      auto name = x.first.as<std::string>("");
      if (name.find('/') == std::string::npos)
        return bad(x.first, fmt::format("'{}' is not provider/model, e.g. openai/gpt-4.1",
                                        utf8_prefix(name, 80)));
      auto one = read_price(name, x.first, x.second);
      if (!one)
        return fail(one.error());
      if (!out.models.emplace(name, std::move(*one)).second)
        return bad(x.first, name + " stands twice");
    }
    return {};
  }

  result<price> read_price(const std::string& name, const YAML::Node& at, const YAML::Node& value) {
    if (!value.IsMap())
      return bad(at, name + ": expected input and output, in money per million tokens");
    price p;
    std::set<std::string> seen;
    for (const auto& x : value) {
      auto key = x.first.as<std::string>("");
      if (!seen.insert(key).second)
        return bad(x.first, fmt::format("{}: '{}' stands twice", name, utf8_prefix(key, 80)));
      if (auto set = set_member(p, name, key, x.first, x.second); !set)
        return fail(set.error());
    }
    for (const char* needed : {"input", "output"})
      if (!seen.contains(needed))
        return bad(at,
                   fmt::format("{}: '{}' is missing, in money per million tokens", name, needed));
    return p;
  }

  result<void> set_member(price& p, const std::string& name, const std::string& key,
                          const YAML::Node& at, const YAML::Node& value) {
    if (key == "as_of" || key == "source") {
      if (key == "as_of")
        p.as_of = value.as<std::string>("");
      return {};
    }
    static const std::vector<std::string_view> keys{"input",       "output", "cached_input",
                                                    "cache_write", "as_of",  "source"};
    if (key != "input" && key != "output" && key != "cached_input" && key != "cache_write")
      return bad(at, fmt::format("{}: unknown key '{}'{}", name, utf8_prefix(key, 80),
                                 did_you_mean(key, keys)));
    auto amount = amount_of(value);
    if (!amount)
      return bad(at, fmt::format("{}: {}: '{}' is not an amount of money per million tokens, e.g. "
                                 "2.50",
                                 name, key, utf8_prefix(value.as<std::string>("..."), 40)));
    if (key == "input")
      p.input = *amount;
    else if (key == "output")
      p.output = *amount;
    else if (key == "cached_input")
      p.cached_input = amount;
    else
      p.cache_write = amount;
    return {};
  }

  static std::optional<double> amount_of(const YAML::Node& value) {
    auto text = value.IsScalar() ? value.Scalar() : "";
    double amount = 0;
    auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), amount);
    auto whole = ec == std::errc{} && end == text.data() + text.size() && !text.empty();
    return whole && std::isfinite(amount) && amount >= 0 && amount <= 1e6 ? std::optional{amount}
                                                                          : std::nullopt;
  }

  [[nodiscard]] tl::unexpected<error> bad(const YAML::Node& at, const std::string& what) const {
    auto mark = at.Mark();
    return fail(errc::invalid_argument,
                mark.line < 0 ? where_ + ": " + what
                              : fmt::format("{}, line {}: {}", where_, mark.line + 1, what));
  }

  std::string where_;
  YAML::Node models_{YAML::NodeType::Map};
};

}  // namespace

result<price_list> parse_prices(std::string_view text, const std::string& where) {
  try {
    return price_reader{where}.read(YAML::Load(std::string{text}));
  } catch (const YAML::Exception& e) {
    return fail(errc::invalid_argument,
                fmt::format("{}, line {}: {}", where, e.mark.line + 1, utf8_prefix(e.msg, 200)));
  }
}

result<price_list> read_prices(const std::string& path) {
  if (path.empty())
    return parse_prices(prices_text, std::string{shipped_name});
  auto text = read_small_file(path);
  if (!text)
    return fail(text.error());
  return parse_prices(*text, path);
}

result<price> price_of(const price_list& list, const std::string& model, const std::string& path) {
  if (const auto* found = list.find(model))
    return *found;
  std::vector<std::string_view> names;
  for (const auto& [name, one] : list.models)
    names.push_back(name);
  return fail(errc::invalid_argument,
              fmt::format("{} has no price for '{}'{}; add it to a copy of the file and "
                          "give that as --prices, or limit tokens instead of money",
                          path.empty() ? std::string{shipped_name} : path, model,
                          did_you_mean(model, names)));
}

}  // namespace troupe
