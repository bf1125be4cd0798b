// SPDX-License-Identifier: Apache-2.0
// Structs as JSON and back, by one list of names each: `void each_member(auto& member, T&)` beside T calls
// `member("name", value.name)` for each. What is missing or null stays as in a T that nobody filled; keys that nobody
// names are passed over; what is of another type is a fault. An enumeration is its name: `to_string(value)` and `bool
// from_string(std::string_view, T&)` stand beside it.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "common/outside.hpp"

namespace strata::members {

template <class T>
concept IsOptional = requires(T value) {
  value.has_value();
};
template <class T>
concept IsList = !std::is_same_v<T, nlohmann::json> && requires(T value) {
  value.emplace_back();
};
template <class T>
concept IsMap = requires {
  typename T::mapped_type;
};
template <class T>
concept IsText = std::is_same_v<T, std::string>;

// A text that is null where it is empty: `member("name", NullIfEmpty{value.name})`.
struct NullIfEmpty {
  std::string& text;
};

// Left out, even where all is written, if there is none: `member("name", IfThere{value.name})`.
template <class T>
struct IfThere {
  std::optional<T>& value;
};
template <class T>
IfThere(std::optional<T>&) -> IfThere<T>;

// Numbers that may be below zero: `member("name", AnySign{value.name})`.
template <class T>
struct AnySign {
  T& value;
};
template <class T>
AnySign(T&) -> AnySign<T>;

// What of a struct is written.
enum class Fill {
  everything,   // what is unknown, not finite or a null as null
  no_nulls,     // neither nulls nor empty lists
  only_filled,  // nor empty texts, nor structs that nobody filled
};

template <Fill fill>
class Writer {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    if constexpr (fill == Fill::only_filled)
      if (is_unfilled(value)) return;
    put(name, json_of(value));
  }
  void operator()(const char* name, NullIfEmpty value) {
    put(name, value.text.empty() ? nlohmann::json() : nlohmann::json(value.text));
  }
  template <class T>
  void operator()(const char* name, IfThere<T> member) {
    if (member.value) put(name, json_of(*member.value));
  }
  template <class T>
  void operator()(const char* name, AnySign<T> number) {
    (*this)(name, number.value);
  }

  template <class T>
  nlohmann::json json_of(const T& value) const {
    if constexpr (IsOptional<T>) {
      return value ? json_of(*value) : nlohmann::json();
    } else if constexpr (IsList<T>) {
      auto list = nlohmann::json::array();
      for (const auto& element : value) list.push_back(json_of(element));
      return list;
    } else if constexpr (IsMap<T>) {
      auto object = nlohmann::json::object();
      for (const auto& [key, element] : value) object[key] = json_of(element);
      return object;
    } else if constexpr (std::is_enum_v<T>) {
      return std::string(to_string(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
    } else if constexpr (std::is_constructible_v<nlohmann::json, T>) {
      return value;
    } else {
      Writer members;
      each_member(members, const_cast<T&>(value));  // the one list serves both directions; a writer only reads
      return std::move(members.written_);
    }
  }

 private:
  void put(const char* name, nlohmann::json json) {
    const bool is_empty = json.is_null() || (json.is_array() && json.empty());
    if (fill == Fill::everything || !is_empty) written_[name] = std::move(json);
  }
  template <class T>
  static bool is_unfilled(const T& value) {
    if constexpr (IsText<T>) return value.empty();
    return std::is_class_v<T> && !IsOptional<T> && value == T();
  }

  nlohmann::json written_ = nlohmann::json::object();
};

class Reader {
 public:
  using Complain = std::function<void(std::string)>;

  // `where`: of the object, as faults name it. `least`: that a number with a fraction may be.
  Reader(const nlohmann::json& object, std::string where, Complain complain, double least = 0)
      : object_(object), where_(std::move(where)), complain_(std::move(complain)), least_(least) {}

  template <class T>
  void operator()(const std::string& name, T& value) {
    if (const auto it = object_.find(name); it != object_.end()) read(*it, name, value);
  }
  void operator()(const std::string& name, NullIfEmpty value) { (*this)(name, value.text); }
  template <class T>
  void operator()(const std::string& name, IfThere<T> member) {
    (*this)(name, member.value);
  }
  template <class T>
  void operator()(const std::string& name, AnySign<T> number) {
    Reader(object_, where_, complain_, std::numeric_limits<double>::lowest())(name, number.value);
  }

 private:
  // False: it is of another type, and that was told; `value` is as it was then.
  template <class T>
  bool read(const nlohmann::json& json, const std::string& name, T& value) {
    const auto fits = [&](bool right, const std::string& allowed) {
      if (!right)
        complain_(fmt::format("\"{}\": \"{}\" is {}; allowed is {}", where_, name, outside::shown(json), allowed));
      return right;
    };
    if constexpr (std::is_same_v<T, nlohmann::json>) {
      value = json;
    } else if (json.is_null()) {
      return true;
    } else if constexpr (IsOptional<T>) {
      typename T::value_type known{};
      if (!read(json, name, known)) return false;
      value = std::move(known);
    } else if constexpr (IsText<T>) {
      if (!fits(json.is_string(), "a text")) return false;
      value = json.template get<std::string>();
    } else if constexpr (IsList<T>) {
      if (!fits(json.is_array(), "a list")) return false;
      for (std::size_t i = 0; i < json.size(); ++i) read_element(json[i], fmt::format("{}[{}]", name, i), value);
    } else if constexpr (IsMap<T>) {
      if (!fits(json.is_object(), "an object")) return false;
      Reader elements(json, where_ + "." + name, complain_, least_);
      for (const auto& [key, element] : json.items()) {
        typename T::mapped_type known{};
        if (elements.read(element, key, known)) value[key] = std::move(known);
      }
    } else if constexpr (std::is_enum_v<T>) {
      return fits(json.is_string() && from_string(json.template get_ref<const std::string&>(), value),
                  "one of its names");
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!fits(json.is_boolean(), "true or false")) return false;
      value = json.template get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      const auto whole = whole_number(json);
      const std::int64_t least = value < T() ? static_cast<std::int64_t>(value) : 0;  // -1 may stand for "none"
      if (!fits(whole && *whole >= least && std::in_range<T>(*whole), fmt::format("a whole number from {}", least)))
        return false;
      value = static_cast<T>(*whole);
    } else if constexpr (std::is_floating_point_v<T>) {
      const bool right = json.is_number() && json.template get<double>() >= least_;
      if (!fits(right, least_ < 0 ? "a number" : "a number from 0")) return false;
      value = json.template get<double>();
    } else {
      if (!fits(json.is_object(), "an object")) return false;
      Reader members(json, where_ + "." + name, complain_, least_);
      each_member(members, value);
    }
    return true;
  }

  // Null is no element.
  template <class List>
  void read_element(const nlohmann::json& json, const std::string& name, List& list) {
    if (json.is_null()) return;
    typename List::value_type known{};
    if (read(json, name, known)) list.push_back(std::move(known));
  }

  // JSON knows no integers: 490e6 is one.
  static std::optional<std::int64_t> whole_number(const nlohmann::json& json) {
    if (!json.is_number_float()) return outside::as_integer(json);
    const auto value = json.get<double>();
    constexpr double most = 9e15;  // up to which each whole number has a double of its own
    if (std::floor(value) != value || std::abs(value) > most) return std::nullopt;
    return static_cast<std::int64_t>(value);
  }

  const nlohmann::json& object_;
  std::string where_;
  Complain complain_;
  double least_;
};

}  // namespace strata::members
