// SPDX-License-Identifier: Apache-2.0
// A number with its interval, and a speedup with its verdict, as results and the store have them: what is not finite is
// unknown.
#pragma once

#include <optional>
#include <string_view>

#include "stats/compare.hpp"

namespace strata::stats {

// With its 99% interval.
struct Estimate {
  std::optional<double> value, low, high;

  Estimate() = default;
  Estimate(std::optional<double> of_value, std::optional<double> of_low, std::optional<double> of_high)
      : value(of_value), low(of_low), high(of_high) {}
  explicit Estimate(const Interval& interval, double scale = 1);

  bool operator==(const Estimate&) const = default;
};

// What a level is beside the reference; smaller differences than the least that is claimed are `same`.
enum class RatioVerdict { reference, faster, slower, same, inconclusive };
const char* to_string(RatioVerdict verdict);
bool from_string(std::string_view name, RatioVerdict& verdict);
RatioVerdict verdict_of(Direction direction);

// A speedup with its verdict alone: nothing of what it rests on.
struct JudgedRatio : Estimate {
  std::optional<RatioVerdict> verdict;

  bool operator==(const JudgedRatio&) const = default;
};

// Names in JSON (common/member_codec.hpp).
void each_member(auto& member, Estimate& estimate) {
  member("value", estimate.value), member("low", estimate.low), member("high", estimate.high);
}

void each_member(auto& member, JudgedRatio& ratio) {
  each_member(member, static_cast<Estimate&>(ratio));
  member("verdict", ratio.verdict);
}

}  // namespace strata::stats
