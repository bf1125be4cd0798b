// SPDX-License-Identifier: Apache-2.0
#include "proof/turn_clock.hpp"

#include <algorithm>

#include "stats/rank_sum.hpp"

namespace strata::proof {
namespace {

constexpr std::size_t kFewest = 3;  // of each kind
constexpr int kTimesLonger = 2;
constexpr double kChance = 1e-4;  // that an honest level's long turns lie so far above its short ones

struct Kinds {
  std::vector<Timed> few, many;
};

// Turns of at most half as many steps as the longest, and those of twice as many as the one of these that left least
// untold, which comes first.
Kinds kinds_of(const std::vector<Timed>& turns) {
  Kinds kinds;
  int longest = 0;
  for (const auto& turn : turns) longest = std::max(longest, turn.iterations);
  for (const auto& turn : turns)
    if (turn.iterations * kTimesLonger <= longest) kinds.few.push_back(turn);
  if (kinds.few.empty()) return kinds;
  const auto untold = [](const Timed& turn) { return turn.unreported_ns(); };
  std::ranges::iter_swap(kinds.few.begin(), std::ranges::min_element(kinds.few, {}, untold));
  const Timed& least = kinds.few.front();
  for (const auto& turn : turns)
    if (turn.iterations >= kTimesLonger * least.iterations) kinds.many.push_back(turn);
  std::ranges::sort(kinds.many, {}, [&](const Timed& turn) {
    return (turn.unreported_ns() - least.unreported_ns()) / (turn.iterations - least.iterations);
  });
  return kinds;
}

// Half of the turns have fewer steps; where more than half have as few as the fewest, these.
int median_iterations(const std::vector<Timed>& turns) {
  std::vector<int> all;
  for (const auto& turn : turns) all.push_back(turn.iterations);
  std::ranges::sort(all);
  const int middle = all[all.size() / 2];
  return middle > all.front() ? middle : *std::ranges::upper_bound(all, middle);
}

// On a machine that others use a turn that did not wait itself is slow all the same: the share of all turns counts.
Timed as_busy_as_all(Timed turn, const std::vector<Timed>& turns) {
  double queued = 0, elapsed = 0;
  for (const auto& each : turns) {
    queued += each.queued_ns;
    elapsed += each.elapsed_ns;
  }
  if (elapsed > 0) turn.queued_ns = std::max(turn.queued_ns, turn.elapsed_ns * queued / elapsed);
  return turn;
}

}  // namespace

void TurnClock::add(const Timed& turn) {
  turns_.push_back(turn);
}

bool TurnClock::enough() const {
  const auto kinds = kinds_of(turns_);
  return kinds.few.size() >= kFewest && kinds.many.size() >= kFewest;
}

ClockEvidence TurnClock::evidence() const {
  ClockEvidence evidence;
  const auto kinds = kinds_of(turns_);
  if (kinds.few.size() < kFewest || kinds.many.size() < kFewest) return evidence;
  evidence.add(as_busy_as_all(kinds.few.front(), turns_), false);
  evidence.add(as_busy_as_all(kinds.many[kinds.many.size() / 4], turns_), true);
  return evidence;
}

std::string TurnClock::complaint() const {
  const auto all = evidence();
  auto why = all.complaint();
  if (why.empty()) return why;
  const int middle = median_iterations(turns_);
  std::vector<double> few, many;  // untold, above what is allowed
  for (const auto& turn : turns_)
    (turn.iterations < middle ? few : many).push_back(turn.unreported_ns() - all.allowed_ns() * turn.iterations);
  return stats::rank_sum_chance(many, few) <= kChance ? why : "";
}

}  // namespace strata::proof
