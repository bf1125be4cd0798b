// SPDX-License-Identifier: Apache-2.0
// Structs as JSON and back, by one list of names each: `void each_member(auto& member, T&)` beside T calls
// `member("name", value.name)` for each. What is null or an empty list is not written; what is missing or null stays as
// in a T that nobody filled; keys that nobody names are passed over; what is of another type is a fault. Internal to
// store/.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "common/outside.hpp"

namespace strata::store {

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

class MemberWriter {
 public:
  // `sparse`: neither empty texts nor structs that nobody filled are written.
  explicit MemberWriter(bool sparse) : sparse_(sparse) {}

  template <class T>
  void operator()(const char* name, const T& value) {
    if (sparse_ && is_unfilled(value)) return;
    auto json = json_of(value);
    if (!json.is_null() && !(json.is_array() && json.empty())) written_[name] = std::move(json);
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
    } else if constexpr (std::is_constructible_v<nlohmann::json, T>) {
      return value;
    } else {
      MemberWriter members(sparse_);
      auto filled = value;
      each_member(members, filled);
      return std::move(members.written_);
    }
  }

 private:
  template <class T>
  static bool is_unfilled(const T& value) {
    if constexpr (IsText<T>) return value.empty();
    return std::is_class_v<T> && !IsOptional<T> && value == T();
  }

  bool sparse_;
  nlohmann::json written_ = nlohmann::json::object();
};

class MemberReader {
 public:
  using Complain = std::function<void(std::string)>;

  // `where`: of the object, as faults name it.
  MemberReader(const nlohmann::json& object, std::string where, Complain complain)
      : object_(object), where_(std::move(where)), complain_(std::move(complain)) {}

  template <class T>
  void operator()(const std::string& name, T& value) {
    if (const auto it = object_.find(name); it != object_.end()) read(*it, name, value);
  }

 private:
  template <class T>
  void read(const nlohmann::json& json, const std::string& name, T& value) {
    const auto fits = [&](bool right, const char* allowed) {
      if (!right)
        complain_(fmt::format("\"{}\": \"{}\" is {}; allowed is {}", where_, name, outside::shown(json), allowed));
      return right;
    };
    if constexpr (std::is_same_v<T, nlohmann::json>) {
      value = json;
    } else if constexpr (IsOptional<T>) {
      if (!json.is_null()) read(json, name, value.emplace());
    } else if constexpr (IsText<T>) {
      if (fits(json.is_string(), "a text")) value = json.template get<std::string>();
    } else if constexpr (IsList<T>) {
      if (json.is_null() || !fits(json.is_array(), "a list")) return;
      for (const auto& element : json) read(element, name, value.emplace_back());
    } else if constexpr (IsMap<T>) {
      if (!fits(json.is_object(), "an object")) return;
      MemberReader elements(json, where_ + "." + name, complain_);
      for (const auto& [key, element] : json.items()) elements.read(element, key, value[key]);
    } else if constexpr (std::is_same_v<T, bool>) {
      if (fits(json.is_boolean(), "true or false")) value = json.template get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      const auto whole = outside::as_integer(json);
      if (fits(whole && *whole >= 0 && *whole <= std::numeric_limits<T>::max(), "a whole number from 0"))
        value = static_cast<T>(*whole);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (fits(json.is_number() && json.template get<double>() >= 0, "a number from 0"))
        value = json.template get<double>();
    } else {
      if (json.is_null() || !fits(json.is_object(), "an object")) return;
      MemberReader members(json, where_ + "." + name, complain_);
      each_member(members, value);
    }
  }

  const nlohmann::json& object_;
  std::string where_;
  Complain complain_;
};

}  // namespace strata::store
