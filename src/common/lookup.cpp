// SPDX-License-Identifier: Apache-2.0
#include "common/lookup.hpp"

#include <cmath>

namespace strata::lookup {
namespace {
const Json kNull;
const Json kEmptyList = Json::array();
}  // namespace

const Json& at(const Json& node, std::string_view path) {
  const Json* here = &node;
  while (!path.empty()) {
    const auto dot = path.find('.');
    const std::string key(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
    if (!here->is_object()) return kNull;
    const auto it = here->find(key);
    if (it == here->end()) return kNull;
    here = &*it;
  }
  return *here;
}

std::optional<double> number(const Json& node, std::string_view path) {
  const Json& value = at(node, path);
  if (!value.is_number()) return std::nullopt;
  const double result = value.get<double>();
  return std::isfinite(result) ? std::optional(result) : std::nullopt;
}

std::string text(const Json& node, std::string_view path) {
  const Json& value = at(node, path);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  return "";
}

bool flag(const Json& node, std::string_view path) {
  const Json& value = at(node, path);
  return value.is_boolean() && value.get<bool>();
}

const Json& list(const Json& node, std::string_view path) {
  const Json& value = at(node, path);
  return value.is_array() ? value : kEmptyList;
}

}  // namespace strata::lookup
