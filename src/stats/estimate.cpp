// SPDX-License-Identifier: Apache-2.0
#include "stats/estimate.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace strata::stats {
namespace {

constexpr std::array kRatioVerdicts{"reference", "faster", "slower", "same", "inconclusive"};

std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

Estimate::Estimate(const Interval& interval, double scale)
    : value(if_finite(interval.value * scale)),
      low(if_finite(interval.low * scale)),
      high(if_finite(interval.high * scale)) {}

const char* to_string(RatioVerdict verdict) {
  return kRatioVerdicts.at(static_cast<std::size_t>(verdict));
}

bool from_string(std::string_view name, RatioVerdict& verdict) {
  const auto* it = std::find(kRatioVerdicts.begin(), kRatioVerdicts.end(), name);
  if (it == kRatioVerdicts.end()) return false;
  verdict = static_cast<RatioVerdict>(it - kRatioVerdicts.begin());
  return true;
}

RatioVerdict verdict_of(Direction direction) {
  switch (direction) {
    case Direction::faster:
      return RatioVerdict::faster;
    case Direction::slower:
      return RatioVerdict::slower;
    case Direction::same:
      return RatioVerdict::same;
    case Direction::inconclusive:
      return RatioVerdict::inconclusive;
  }
  return RatioVerdict::inconclusive;
}

}  // namespace strata::stats
