// SPDX-License-Identifier: Apache-2.0
// From blocks measured in turns to estimates, 99% intervals and verdicts. Pure functions; the method is
// docs/measuring.md. Convention: a log ratio is ln(reference time / level time), so that above 0 the level is faster
// and exp() is the ratio "times as fast". A process effect (`process_sigma`) is the relative standard deviation between
// processes, as 0.015.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stats/half_width.hpp"
#include "stats/learned.hpp"
#include "stats/sample.hpp"

namespace strata::stats {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Median iteration of a block in ns as [restart][round][level]; NaN: missing or disturbed. Rounds may differ in number.
using Blocks = std::vector<std::vector<std::vector<double>>>;

// Process effects that are assumed until `doctor --calibrate` has measured this machine's.
inline constexpr double assumed_process_sigma(int threads) {
  return threads <= 1 ? 0.015 : 0.03;
}

// A value with its 99% interval. Infinite ends: the data do not bound it.
struct Interval {
  double value = nan, low = nan, high = nan;
};

// ln(reference/level) of each round in which both were measured, per restart (which may be empty).
std::vector<std::vector<double>> log_differences(const Blocks& blocks, std::size_t reference, std::size_t level);

struct Comparison {
  Interval log_ratio;               // value, and its 99% interval
  Interval assumed_only;            // the same if the process effect were what it is assumed to be
  HalfWidth half_width;             // of log_ratio, and what it rests on
  double within_se = nan;           // root mean square of the restarts' own standard errors
  double process_sigma = 0;         // that was assumed
  LearnedSpread learned;            // of earlier runs
  double scatter = nan;             // standard deviation of the restarts' estimates; NaN for one restart
  std::vector<double> per_restart;  // estimates of the restarts that had data
  std::size_t differences = 0;      // that went in, all restarts together

  int restarts() const { return static_cast<int>(per_restart.size()); }
  Interval ratio() const;  // exp of the log ratio: times as fast as the reference
};

// Mean of the restarts' trimmed means; half_width (half_width.hpp) of variances mean SE_r^2 / R, 2 sigma^2 / R, that of
// the restarts' estimates and what was learned. A restart of fewer than 5 differences borrows the others' spread. No
// data: all NaN; no spread: infinite ends.
Comparison compare(std::span<const std::vector<double>> log_differences_per_restart, double process_sigma,
                   const LearnedSpread& learned = {});

// What a comparison of one run teaches those after it; nothing if it has no scatter.
LearnedSpread learned_from(const Comparison& comparison);
// The standard deviation (relative) of a pair's ratio between restarts that processes are expected to make: learned, or
// assumed of each of the two.
double expected_between(const Comparison& comparison);
// The process effect (relative, mean of both levels) that an interval of Basis::learned rests on: of earlier restarts
// and the run's own.
double learned_process_effect(const Comparison& comparison);

// For levels that never ran in the same restart, or cases that were measured one after the other: log times per restart
// of each side. Wider by the drift between restarts; drift from case to case is not in it.
Comparison compare_unpaired(std::span<const double> reference_log_times, std::span<const double> level_log_times,
                            double process_sigma);

// The comparison with at least this half width, of another one that sees what this one cannot.
Comparison no_narrower_than(Comparison comparison, const HalfWidth& other);

// True: the restarts scatter over 3 times what noise within them and expected_between allow, or over 60% of pairs were
// dropped as disturbed.
bool too_busy(const Comparison& comparison, double dropped_share);

enum class Direction { faster, slower, same, inconclusive };
std::string_view to_string(Direction direction);

struct Verdict {
  Direction direction = Direction::inconclusive;
  double same_within = nan;  // smallest d for which the interval lies within +-d (relative, 0.021); set for `same` only
};

// faster, slower: the interval excludes no change and the value exceeds minimum_effect (relative, as 0.01).
// same: otherwise, if the interval lies within +-2 minimum_effect. inconclusive: neither.
Verdict judge(const Comparison& comparison, double minimum_effect);

// Smallest effect (relative) that this run finds with 95% power under judge's rule. Infinite for no interval.
double smallest_visible(const Comparison& comparison, double minimum_effect);
// Half width (relative) of the 99% interval that R restarts can reach however long each lasts, if they scatter by no
// more than the process effect: 2.576 sqrt(2/R) sigma; fewer than three: the same with most_process_sigma.
double reachable_precision(int restarts, double process_sigma);
// Fewest restarts that can reach a half width (relative); nullopt: over 10,000.
std::optional<int> restarts_for_precision(double half_width, double process_sigma);
// Fewest restarts after which judge would decide, if the estimate and the scatter stay what they are. nullopt: over
// 10,000, or no data.
std::optional<int> restarts_to_resolve(const Comparison& comparison, double minimum_effect);
// Fewest restarts after which the 99% interval has this half width (relative), if the scatter stays what it is. nullopt
// as above.
std::optional<int> restarts_to_reach(const Comparison& comparison, double half_width);

// One time per level from all blocks together, so that differences between levels add up along any path.
struct JointEstimates {
  std::vector<double> milliseconds;  // per level; NaN: no block
  bool connected = true;  // false: some levels share no restart, so that drift between restarts is in their difference
};
// Model: ln(time) = level + round (in its restart) + restart; robust to single bad blocks.
JointEstimates joint_estimates(const Blocks& blocks);

// A level's time as it is shown.
struct ShownTime {
  double milliseconds = nan;
  bool is_median = false;  // of all samples, since the model has next to nothing of this level to go by
};
// The joint estimate; the median of the level's samples where most of its blocks were disturbed (`disturbed_share`), or
// where the estimate lies outside of their range, as the model's extrapolations may.
ShownTime shown_time(double joint_ms, std::span<const double> samples_ms, double disturbed_share);

// Ledger edge in ms, to minus from (below 0: `to` is faster): value from the joint estimates, width from the paired
// comparison whose reference is `from` and level is `to`.
Interval difference_ms(double from_ms, double to_ms, const Comparison& comparison);

// How many iterations pay for a level's slower start.
struct BreakEven {
  Interval iterations;        // NaN when never or inconclusive; high may be infinite
  bool never = false;         // it starts slower and is resolved not to be faster
  bool inconclusive = false;  // it starts slower, and whether it is faster is inconclusive
};
// extra_start_ms: level's start minus reference's; difference_ms: level minus reference per iteration (below 0:
// faster). A level that starts no slower has nothing to pay for: 0.
BreakEven break_even(const Interval& extra_start_ms, const Interval& difference_ms, Direction verdict);
// Median with the range (not a confidence interval) of few values, for starts. NaN when empty.
Interval range_of(std::span<const double> values);

// The process effect of a machine, from several instances of one program that took turns.
struct ProcessEffect {
  double sigma = nan, low = nan, high = nan;  // relative; 95% interval, normal theory
  int instances = 0, sessions = 0;
};
// blocks: [session][round][instance] medians in ns. Variance of instance effects minus their mean squared standard
// error. Needs two instances with at least 5 rounds in one session; otherwise all NaN.
ProcessEffect estimate_process_effect(const Blocks& blocks);

}  // namespace strata::stats
