// SPDX-License-Identifier: Apache-2.0
#include "report/access.hpp"

#include <algorithm>
#include <cmath>

#include "common/outside.hpp"

namespace strata::report {
namespace {
const Json kNull;
const Json kEmpty = Json::array();
}  // namespace

const Json& at(const Json& node, std::string_view path) {
  const Json* here = &node;
  while (!path.empty()) {
    const auto dot = path.find('.');
    const std::string key(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
    if (!here->is_object()) return kNull;
    const auto found = here->find(key);
    if (found == here->end()) return kNull;
    here = &*found;
  }
  return *here;
}

std::optional<double> number(const Json& node, std::string_view path) {
  const Json& value = at(node, path);
  if (!value.is_number()) return std::nullopt;
  const double result = value.get<double>();
  return std::isfinite(result) ? std::optional(result) : std::nullopt;
}

int whole(const Json& node, std::string_view path, int otherwise, int low, int high) {
  const auto value = outside::as_integer(at(node, path));
  return value && *value >= low && *value <= high ? static_cast<int>(*value) : otherwise;
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
  return value.is_array() ? value : kEmpty;
}

std::string level_name(const Json& row) {
  const auto variant = text(row, "variant");
  const auto environment = text(row, "environment");
  return text(row, "level") + (variant.empty() || variant == "default" ? "" : "@" + variant) +
         (environment.empty() ? "" : "[" + environment + "]");
}

bool is_measured(const Json& row) {
  return text(row, "state") == "measured";
}

std::vector<const Json*> sorted_rows(const Json& one_case) {
  std::vector<const Json*> rows;
  for (const auto& row : list(one_case, "rows")) rows.push_back(&row);
  const auto key = [](const Json* row) {
    return std::tuple(flag(*row, "harness"), flag(*row, "peer"), number(*row, "rank").value_or(99),
                      text(*row, "level"));
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Json* a, const Json* b) { return key(a) < key(b); });
  return rows;
}

const Json* reference_row(const Json& one_case) {
  const auto name = text(one_case, "reference_level");
  const Json* by_name = nullptr;
  for (const auto& row : list(one_case, "rows")) {
    if (flag(row, "reference")) return &row;
    if (!by_name && level_name(row) == name) by_name = &row;
  }
  return by_name;
}

}  // namespace strata::report
