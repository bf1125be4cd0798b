// SPDX-License-Identifier: Apache-2.0
// A member of a request, declared once: its name in JSON, its option, what it may be, how it is read and written.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "common/result.hpp"
#include "plan/named_environments.hpp"

namespace strata::requests {

// What an option takes: nothing (a flag), a value, a value of several with commas between them, a value each time that
// it is given.
enum class Arity { nothing, one, list, repeated };

// It refers to the member, which outlives it.
struct Member {
  std::string name, option, help;  // `option`: empty: a place of its own, as the model has
  std::string also;                // another name of the option, which suites take, too
  std::string type;                // of a value, as help shows it
  Arity arity = Arity::one;
  bool required = false;
  // `option` as messages name it. Of what is repeated, the next value. Error: usage.
  std::function<Result<void>(const std::string& option, const std::string& value)> read_text;
  // Says what is allowed where the value is not that; nullopt: it is.
  std::function<std::optional<std::string>(const nlohmann::json&)> read_json;
  std::function<nlohmann::json()> json;
  // As typed, one for each time that the option is given. Empty: there is nothing to type.
  std::function<std::vector<std::string>()> values;

  // "--batch"; of what has no option, its name.
  const std::string& option_or_name() const { return option.empty() ? name : option; }
  Result<void> read(const std::string& value) const { return read_text(option_or_name(), value); }
};

// Where a number lies that may be open.
template <class T>
struct Place {
  std::function<std::optional<T>()> get;
  std::function<void(T)> set;

  template <class Own>
  requires std::is_arithmetic_v<Own> Place(Own& value)
      : get([&value] { return std::optional<T>(value); }), set([&value](T to) { value = Own(to); }) {}
  template <class Own>
  Place(std::optional<Own>& value)
      : get([&value]() -> std::optional<T> { return value ? std::optional<T>(*value) : std::nullopt; }),
        set([&value](T to) { value = static_cast<Own>(to); }) {}
  // The only one of a list.
  Place(std::vector<int>& values)
      : get([&values]() -> std::optional<T> { return values.empty() ? std::nullopt : std::optional<T>(values[0]); }),
        set([&values](T to) { values = {static_cast<int>(to)}; }) {}
};
using Whole = Place<std::int64_t>;
using Real = Place<double>;

inline constexpr auto no_bound = std::numeric_limits<std::int64_t>::max();

// A member of this kind, named. `type`: empty: the kind's own.
Member described(Member member, std::string name, std::string option, std::string help, const char* type = "");

inline constexpr const char* kOff = "false";  // what turns a flag off, where one is typed as --flag=false
Member flag(bool& value);
Member text(std::string& value, Arity arity = Arity::one);
Member choice(std::string& value, std::vector<std::string> allowed);
Member whole(Whole value, std::int64_t low, std::int64_t high = no_bound);
Member threads(Whole value);                  // as plan::check_threads allows, or all: the physical cores
Member thread_counts(std::vector<int>& all);  // the same, several
Member axis(std::vector<int>& values, int low, int high);
// Words with commas between them, none twice. `allowed`: empty: any.
Member words(std::vector<std::string>& values, std::vector<std::string> allowed = {});
Member repeated(std::vector<std::string>& values);
Member environments(std::vector<plan::NamedPython>& named);
Member positive(Real value);
Member seconds(Real value);
Member share(Real value, bool or_none = false);  // "1%" or 0.01: above 0 (or 0, too), up to 1
Member percentage_points(Real share);            // "1pp": above 0, up to 50
Member percent(Real share);                      // "95%": above 0, up to 100

}  // namespace strata::requests
