#pragma once
// Tools in C++: what an agent's model, or its code inside a sandbox, may call.

#include <troupe/error.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

using json = nlohmann::json;
using ordered_json = nlohmann::ordered_json;

/// Which call of a tool this is.
struct call_info {
  std::uint64_t run = 0;   ///< run::id()
  std::uint64_t call = 0;  ///< unique in the run
  /// When the run's time is up; the largest value: never.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// A tool. Value. `call` runs on one of the runtime's tool threads (runtime_options::tool_threads),
/// several of them at once: it must be thread-safe, and may block, which delays other calls alone.
/// It gets an object that fits `parameters`, with defaults filled in, and returns JSON, or an error
/// whose detail the model reads. What it throws becomes such an error.
struct native_tool {
  std::string name{};         ///< a Python identifier, no keyword and no builtin
  std::string description{};  ///< for the model
  /// JSON Schema of the arguments; the order of its properties is that of positional arguments.
  ordered_json parameters = {{"type", "object"}, {"properties", ordered_json::object()}};
  std::function<result<json>(const json& arguments, const call_info& info)> call{};
  bool idempotent = false;  ///< may be repeated when it is not known whether it was carried out
  bool ends_run = false;    ///< its result is the run's answer
};

/// A parameter of a function that make_tool turns into a tool.
struct tool_parameter {
  std::string name{};
  std::string description{};
};

namespace detail {

template <class T>
struct schema_of {  ///< any JSON value
  static ordered_json get() { return ordered_json::object(); }
};
template <>
struct schema_of<bool> {
  static ordered_json get() { return {{"type", "boolean"}}; }
};
template <>
struct schema_of<std::string> {
  static ordered_json get() { return {{"type", "string"}}; }
};
template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
struct schema_of<T> {
  static ordered_json get() { return {{"type", "integer"}}; }
};
template <class T>
  requires std::is_floating_point_v<T>
struct schema_of<T> {
  static ordered_json get() { return {{"type", "number"}}; }
};
template <class T>
struct schema_of<std::vector<T>> {
  static ordered_json get() { return {{"type", "array"}, {"items", schema_of<T>::get()}}; }
};
template <class T>
struct schema_of<std::map<std::string, T>> {
  static ordered_json get() {
    return {{"type", "object"}, {"additionalProperties", schema_of<T>::get()}};
  }
};
template <class T>
struct schema_of<std::optional<T>> : schema_of<T> {};

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<result<T>> = true;

template <class F>
struct signature : signature<decltype(&F::operator())> {};
template <class R, class... As>
struct signature<R (*)(As...)> {
  using returned = R;
  using arguments = std::tuple<std::decay_t<As>...>;
};
template <class C, class R, class... As>
struct signature<R (C::*)(As...) const> : signature<R (*)(As...)> {};
template <class C, class R, class... As>
struct signature<R (C::*)(As...)> : signature<R (*)(As...)> {};

template <class T>
T argument(const json& all, const std::string& name) {
  auto it = all.find(name);
  if constexpr (is_optional<T>) {
    if (it == all.end() || it->is_null())
      return std::nullopt;
    return it->template get<typename T::value_type>();
  } else {
    return it == all.end() ? json{}.get<T>() : it->template get<T>();
  }
}

template <class F, class Arguments, std::size_t... Is>
result<json> call_with(F& f, const std::vector<std::string>& names, const json& all,
                       std::index_sequence<Is...>) {
  using returned = typename signature<F>::returned;
  auto invoke = [&]() -> returned {
    return f(argument<std::tuple_element_t<Is, Arguments>>(all, names[Is])...);
  };
  if constexpr (std::is_void_v<returned>) {
    invoke();
    return json{};
  } else if constexpr (std::is_same_v<returned, result<void>>) {
    return invoke().map([] { return json{}; });
  } else if constexpr (is_result<returned>) {
    return invoke().map([](auto&& x) { return json(std::forward<decltype(x)>(x)); });
  } else {
    return json(invoke());
  }
}

template <class Arguments, std::size_t... Is>
ordered_json parameters_of(const std::vector<tool_parameter>& named, std::index_sequence<Is...>) {
  auto properties = ordered_json::object();
  auto required = ordered_json::array();
  (
    [&] {
      using type = std::tuple_element_t<Is, Arguments>;
      auto schema = schema_of<type>::get();
      schema["description"] = named[Is].description;
      properties[named[Is].name] = std::move(schema);
      if (!is_optional<type>)
        required.push_back(named[Is].name);
    }(),
    ...);
  return {{"type", "object"}, {"properties", properties}, {"required", required}};
}

template <class F>
native_tool typed_tool(std::string name, std::string description,
                       const std::vector<tool_parameter>& named, F f) {
  using arguments = typename signature<F>::arguments;
  using each = std::make_index_sequence<std::tuple_size_v<arguments>>;
  native_tool t;
  t.name = std::move(name);
  t.description = std::move(description);
  t.parameters = parameters_of<arguments>(named, each{});
  std::vector<std::string> names;
  for (const auto& p : named)
    names.push_back(p.name);
  t.call = [names = std::move(names), f = std::move(f)](const json& all, const call_info&) mutable {
    return call_with<F, arguments>(f, names, all, each{});
  };
  return t;
}

}  // namespace detail

/// A tool from a function or lambda whose arguments are typed: the schema follows from their types.
/// bool, integers, floating point, std::string, std::vector, std::map<std::string, T> and
/// troupe::json are taken; a std::optional need not be given. It returns what nlohmann::json can be
/// made of, nothing, or a troupe::result of it. `parameters` names the arguments in their order.
///
///   auto add = troupe::make_tool("add", "Adds two numbers.", {{"a", "one"}, {"b", "the other"}},
///                                [](double a, double b) { return a + b; });
template <std::size_t N, class F>
[[nodiscard]] native_tool make_tool(std::string name, std::string description,
                                    const tool_parameter (&parameters)[N], F f) {
  static_assert(N == std::tuple_size_v<typename detail::signature<F>::arguments>,
                "name each argument of the function, in its order");
  return detail::typed_tool(std::move(name), std::move(description),
                            {std::begin(parameters), std::end(parameters)}, std::move(f));
}

/// The same for a function without arguments.
template <class F>
[[nodiscard]] native_tool make_tool(std::string name, std::string description, F f) {
  static_assert(std::tuple_size_v<typename detail::signature<F>::arguments> == 0,
                "name each argument of the function, in its order");
  return detail::typed_tool(std::move(name), std::move(description), {}, std::move(f));
}

}  // namespace troupe
