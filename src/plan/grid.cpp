// SPDX-License-Identifier: Apache-2.0
#include "plan/grid.hpp"

#include <algorithm>
#include <iterator>

namespace strata::plan {
using Json = nlohmann::json;

Grid::Grid(const std::vector<Json>& specs) {
  for (const auto& spec : specs)
    for (const char* axis : kAxes) values_[axis].insert(spec.value(axis, Json()));
}

bool Grid::is_corner(const Json& spec) const {
  return std::all_of(values_.begin(), values_.end(), [&](const auto& axis) {
    const auto own = spec.value(axis.first, Json());
    return own == *axis.second.begin() || own == *axis.second.rbegin();
  });
}

bool Grid::is_in_middle(const Json& spec, const char* axis) const {
  const auto& values = values_.at(axis);
  return spec.value(axis, Json()) == *std::next(values.begin(), static_cast<std::ptrdiff_t>(values.size() / 2));
}

bool Grid::is_on_line(const Json& spec) const {
  return is_in_middle(spec, "batch") || is_in_middle(spec, "size");
}

}  // namespace strata::plan
