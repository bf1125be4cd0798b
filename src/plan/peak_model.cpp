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
  groups_[group_of(level, question)].push_back({moving, peak, question.image_size()});
}

// By least squares; nullopt: no two of them differ.
std::optional<PeakModel::Line> PeakModel::line_of(std::span<const Measured> seen) {
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  const double n = static_cast<double>(seen.size());
  for (const auto& element : seen) {
    mean_x += element.moving / n;
    mean_y += element.peak / n;
  }
  for (const auto& element : seen) {
    xx += (element.moving - mean_x) * (element.moving - mean_x);
    xy += (element.moving - mean_x) * (element.peak - mean_y);
  }
  if (xx <= 0) return std::nullopt;
  return Line{std::max(0.0, xy / xx), mean_x, mean_y};  // larger points need no less
}

std::optional<double> PeakModel::foreseen(const std::vector<Measured>& seen, const Measured& of) {
  const auto whole = line_of(seen);
  if (!whole) return std::nullopt;
  std::map<std::optional<std::pair<std::int64_t, std::int64_t>>, std::vector<Measured>> by_size;
  for (const auto& element : seen) by_size[element.size].push_back(element);
  const auto same = by_size.find(of.size);
  if (same == by_size.end()) return std::max(0.0, whole->peak + whole->slope * (of.moving - whole->moving));
  double slope = 0, points = 0;  // weighted by how many points say so
  for (const auto& [size, group] : by_size)
    if (const auto line = line_of(group)) {
      slope += line->slope * static_cast<double>(group.size());
      points += static_cast<double>(group.size());
    }
  slope = points > 0 ? slope / points : whole->slope;
  if (const auto own = line_of(same->second)) slope = own->slope;
  const auto nearest = std::min_element(same->second.begin(), same->second.end(), [&](const auto& a, const auto& b) {
    return std::abs(a.moving - of.moving) < std::abs(b.moving - of.moving);
  });
  return std::max(0.0, nearest->peak + slope * (of.moving - nearest->moving));
}

std::optional<double> PeakModel::expected(const std::string& level, const core::Case& question, double moving) const {
  const auto it = groups_.find(group_of(level, question));
  return it == groups_.end() ? std::nullopt : foreseen(it->second, {moving, 0, question.image_size()});
}

std::optional<double> PeakModel::worst_error() const {
  std::optional<double> worst;
  for (const auto& [name, seen] : groups_) {
    if (seen.size() < 3) continue;
    const auto [least, most] =
        std::minmax_element(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.moving < b.moving; });
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i].moving <= least->moving || seen[i].moving >= most->moving) continue;
      auto others = seen;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      if (const auto peak = foreseen(others, seen[i]))
        worst = std::max(worst.value_or(0), std::abs(*peak / seen[i].peak - 1));
    }
  }
  return worst;
}

}  // namespace strata::plan
