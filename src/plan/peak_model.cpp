// SPDX-License-Identifier: Apache-2.0
#include "plan/peak_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace strata::plan {

std::string PeakModel::group_of(const std::string& level, const core::Case& question) {
  return fmt::format("{}/{}/{}/{}", level, name_of(question.mode), name_of(question.precision), question.threads);
}

void PeakModel::add(const std::string& level, const core::Case& question, double moving, double peak) {
  groups_[group_of(level, question)].push_back({moving, peak});
}

std::optional<double> PeakModel::on_line(const std::vector<Measured>& seen, double moving) {
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  const double n = static_cast<double>(seen.size());
  for (const auto& [x, y] : seen) {
    mean_x += x / n;
    mean_y += y / n;
  }
  for (const auto& [x, y] : seen) {
    xx += (x - mean_x) * (x - mean_x);
    xy += (x - mean_x) * (y - mean_y);
  }
  if (xx <= 0) return std::nullopt;
  const double slope = std::max(0.0, xy / xx);  // larger points need no less
  return std::max(0.0, mean_y + slope * (moving - mean_x));
}

std::optional<double> PeakModel::expected(const std::string& level, const core::Case& question, double moving) const {
  const auto found = groups_.find(group_of(level, question));
  return found == groups_.end() ? std::nullopt : on_line(found->second, moving);
}

std::optional<double> PeakModel::worst_error() const {
  std::optional<double> worst;
  for (const auto& [name, seen] : groups_) {
    if (seen.size() < 3) continue;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      auto others = seen;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      if (const auto foreseen = on_line(others, seen[i].moving))
        worst = std::max(worst.value_or(0), std::abs(*foreseen / seen[i].peak - 1));
    }
  }
  return worst;
}

}  // namespace strata::plan
