// SPDX-License-Identifier: Apache-2.0
#include "run/criteria.hpp"

#include <algorithm>
#include <cmath>

namespace strata::run {

void StopByTime::begin() {
  began_ = clock_();
  lost_ = 0;
  rounds_ = 0;
}

void StopByTime::add(const FinishedTurn& turn) {
  rounds_ = turn.round + 1;
  if (turn.outcome == TurnOutcome::failure) lost_ += turn.seconds;
}

bool StopByTime::finished() {
  return rounds_ >= fewest_ && spent() >= seconds_;
}

double StopByTime::left() const {
  return std::max(0.0, seconds_ - spent());
}

bool StopByPrecision::finished() {
  if (restarts_ < stats::fewest_with_scatter) return false;
  const auto all = comparisons_();
  return std::all_of(all.begin(), all.end(),
                     [&](const auto& element) { return element.half_width.width <= std::log1p(width_); });
}

}  // namespace strata::run
