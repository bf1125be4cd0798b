// SPDX-License-Identifier: Apache-2.0
#include "stats/compare.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace strata::stats {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t enough = 5;         // differences from which a winsorised error means something
constexpr double median_variance = 1.35;  // of a median of three or four, in units of the mean's
constexpr int most_restarts = 10000;

Interval around(double value, double half_width) {
  return {value, value - half_width, value + half_width};
}

// Spread inside restarts: mean squared standard error of the restarts' estimates, with its degrees of freedom (0:
// unknown).
struct Within {
  double mean_square = nan;
  double df = 0;
};

Within within_restarts(std::span<const std::vector<double>> restarts) {
  double known_squares = 0, known_variances = 0, deviations = 0, df_known = 0, df_few = 0, few_reciprocals = 0;
  std::size_t known = 0, few = 0;
  for (const std::vector<double>& sample : restarts) {
    const auto n = static_cast<double>(sample.size());
    if (sample.empty()) continue;
    if (sample.size() >= enough) {
      const TrimmedMean trimmed = trimmed_mean(sample);
      known_squares += trimmed.standard_error * trimmed.standard_error;
      known_variances += trimmed.standard_error * trimmed.standard_error * n;
      df_known += static_cast<double>(trimmed.used - 1);
      ++known;
    } else {
      const double sd = sample.size() > 1 ? standard_deviation(sample) : 0;
      deviations += sd * sd * (n - 1);
      df_few += n - 1;
      few_reciprocals += 1 / n;
      ++few;
    }
  }
  const double df = known ? df_known : df_few;
  if (df == 0) return {};
  const double variance_of_one = known ? known_variances / static_cast<double>(known) : deviations / df_few;
  const double squares = known_squares + median_variance * variance_of_one * few_reciprocals;
  return {squares / static_cast<double>(known + few), df};
}

}  // namespace

std::string_view to_string(Direction direction) {
  switch (direction) {
    case Direction::faster:
      return "faster";
    case Direction::slower:
      return "slower";
    case Direction::same:
      return "same";
    case Direction::inconclusive:
      break;
  }
  return "inconclusive";
}

Interval Comparison::ratio() const {
  return {std::exp(log_ratio.value), std::exp(log_ratio.low), std::exp(log_ratio.high)};
}

std::vector<std::vector<double>> log_differences(const Blocks& blocks, std::size_t reference, std::size_t level) {
  std::vector<std::vector<double>> out(blocks.size());
  for (std::size_t restart = 0; restart < blocks.size(); ++restart)
    for (const std::vector<double>& round : blocks[restart]) {
      if (reference >= round.size() || level >= round.size()) continue;
      const double difference = std::log(round[reference] / round[level]);
      if (std::isfinite(difference)) out[restart].push_back(difference);
    }
  return out;
}

namespace {

// Variance of an earlier restart's log ratio, had it had as much noise within as one of now; NaN: that is unknown.
double as_noisy(const LearnedSpread& learned, double within) {
  return learned.variance + (within > learned.within ? within - learned.within : 0);
}

// The comparison of a value whose evidence is known.
void set_interval(Comparison& comparison, double value, const Evidence& evidence) {
  comparison.half_width = half_width(evidence);
  comparison.log_ratio = around(value, comparison.half_width.width);
  comparison.assumed_only = around(value, assumed_half_width(evidence));
}

}  // namespace

Comparison compare(std::span<const std::vector<double>> restarts, double process_sigma, const LearnedSpread& learned) {
  Comparison out;
  for (const std::vector<double>& sample : restarts) {
    if (sample.empty()) continue;
    out.per_restart.push_back(sample.size() >= enough ? trimmed_mean(sample).value : median(sample));
    out.differences += sample.size();
  }
  if (out.per_restart.empty()) return out;
  const auto count = static_cast<double>(out.per_restart.size());
  const Within within = within_restarts(restarts);
  out.process_sigma = process_sigma;
  out.learned = learned;
  out.scatter = standard_deviation(out.per_restart);
  out.within_se = std::sqrt(within.mean_square);
  set_interval(out, mean(out.per_restart),
               {.restarts = out.restarts(),
                .processes = 2 / count,
                .process_sigma = process_sigma,
                .within = within.mean_square / count,
                .within_df = within.df,
                .seen = out.scatter * out.scatter / count,
                .learned = as_noisy(learned, within.mean_square) / count,
                .learned_df = learned.df});
  return out;
}

Comparison compare_unpaired(std::span<const double> reference, std::span<const double> level, double process_sigma) {
  Comparison out;
  if (reference.empty() || level.empty()) return out;
  const std::size_t fewest = std::min(reference.size(), level.size());
  for (std::size_t i = 0; i < fewest; ++i) out.per_restart.push_back(reference[i] - level[i]);
  out.differences = fewest;
  out.process_sigma = process_sigma;
  out.scatter = standard_deviation(out.per_restart);
  out.within_se = 0;  // only medians are left of what is within a restart
  const auto variance = [](std::span<const double> times) {
    const double sd = standard_deviation(times);
    return sd * sd / static_cast<double>(times.size());
  };
  set_interval(out, mean(reference) - mean(level),
               {.restarts = out.restarts(),
                .processes = 1 / static_cast<double>(reference.size()) + 1 / static_cast<double>(level.size()),
                .process_sigma = process_sigma,
                .seen = variance(reference) + variance(level)});
  return out;
}

Comparison no_narrower_than(Comparison comparison, const HalfWidth& other) {
  if (std::isnan(comparison.log_ratio.value) || other.width <= comparison.half_width.width) return comparison;
  comparison.half_width = other;
  comparison.log_ratio = around(comparison.log_ratio.value, other.width);
  return comparison;
}

LearnedSpread learned_from(const Comparison& comparison) {
  if (comparison.restarts() < 2 || !std::isfinite(comparison.scatter)) return {};
  const double within = comparison.within_se * comparison.within_se;
  return {.variance = comparison.scatter * comparison.scatter,
          .within = std::isnan(within) ? 0 : within,
          .df = static_cast<double>(comparison.restarts() - 1),
          .restarts = comparison.restarts(),
          .runs = 1};
}

double expected_between(const Comparison& comparison) {
  if (!comparison.learned.known()) return std::numbers::sqrt2 * comparison.process_sigma;
  return std::sqrt(std::max(comparison.learned.variance - comparison.learned.within, 0.0));
}

double learned_process_effect(const Comparison& comparison) {
  const double error = comparison.half_width.standard_error, within = comparison.within_se * comparison.within_se;
  const double variance = error * error * comparison.restarts();
  return std::sqrt(std::max(variance - (std::isnan(within) ? 0 : within), 0.0) / 2);
}

namespace {

// std::hypot is of a newer C library than the package's oldest (common/older_glibc.cpp); nothing here is as large as a
// square that overflows.
double joint(double one, double other) {
  return std::sqrt(one * one + other * other);
}

}  // namespace

bool too_busy(const Comparison& comparison, double dropped_share) {
  if (dropped_share > 0.6) return true;
  return comparison.scatter > 3 * joint(comparison.within_se, expected_between(comparison));  // false for NaN
}

Verdict judge(const Comparison& comparison, double minimum_effect) {
  const Interval& log_ratio = comparison.log_ratio;
  if (std::isnan(log_ratio.value)) return {};
  if (std::abs(log_ratio.value) > std::log1p(minimum_effect)) {
    if (log_ratio.low > 0) return {Direction::faster, nan};
    if (log_ratio.high < 0) return {Direction::slower, nan};
  }
  const double within = std::expm1(std::max(std::abs(log_ratio.low), std::abs(log_ratio.high)));
  if (within <= 2 * minimum_effect) return {Direction::same, within};
  return {};
}

double smallest_visible(const Comparison& comparison, double minimum_effect) {
  const HalfWidth& half = comparison.half_width;
  if (std::isinf(half.width)) return infinity;
  return std::expm1(std::max(half.width, std::log1p(minimum_effect)) + half.one_sided_95 * half.standard_error);
}

namespace {

// Half width (of the logarithm) that so many restarts will have, each with this variance within and scatter.
double planned_half_width(int restarts, double within, double scatter, double process_sigma,
                          const LearnedSpread& learned = {}) {
  const auto count = static_cast<double>(restarts);
  return half_width({.restarts = restarts,
                     .processes = 2 / count,
                     .process_sigma = process_sigma,
                     .within = within / count,
                     .seen = scatter * scatter / count,
                     .learned = as_noisy(learned, within) / count,
                     .learned_df = learned.df})
      .width;
}

// Fewest restarts, `from` of them at least, with at most this half width (of the logarithm); it falls from three on.
std::optional<int> fewest_restarts(double half_width, double within, double scatter, double process_sigma,
                                   const LearnedSpread& learned = {}, int from = 1) {
  const auto enough_are = [&](int restarts) {
    return planned_half_width(restarts, within, scatter, process_sigma, learned) <= half_width * (1 + 1e-9);
  };
  if (!(half_width > 0) || !enough_are(most_restarts)) return std::nullopt;
  for (int few = from; few < fewest_with_scatter; ++few)
    if (enough_are(few)) return few;
  int too_few = fewest_with_scatter - 1, fewest = most_restarts;
  while (fewest - too_few > 1) {
    const int middle = (too_few + fewest) / 2;
    (enough_are(middle) ? fewest : too_few) = middle;
  }
  return fewest;
}

// As fewest_restarts, of one that goes on as it began.
std::optional<int> fewest_to_reach(const Comparison& comparison, double half_width) {
  if (std::isnan(comparison.log_ratio.value) || std::isnan(comparison.within_se)) return std::nullopt;
  // One restart shows no scatter: then what is expected.
  const double scatter =
      std::isnan(comparison.scatter) ? joint(comparison.within_se, expected_between(comparison)) : comparison.scatter;
  // What one or two restarts would claim counts only until three have shown their scatter.
  const int from = std::min(comparison.restarts(), fewest_with_scatter);
  return fewest_restarts(half_width, comparison.within_se * comparison.within_se, scatter, comparison.process_sigma,
                         comparison.learned, from);
}

}  // namespace

double reachable_precision(int restarts, double process_sigma) {
  return std::expm1(planned_half_width(restarts, 0, 0, process_sigma));
}

std::optional<int> restarts_for_precision(double half_width, double process_sigma) {
  return fewest_restarts(std::log1p(half_width), 0, 0, process_sigma);
}

std::optional<int> restarts_to_resolve(const Comparison& comparison, double minimum_effect) {
  const double value = std::abs(comparison.log_ratio.value);
  const double as_different = value > std::log1p(minimum_effect) ? value : 0;
  const double as_same = std::log1p(2 * minimum_effect) - value;
  return fewest_to_reach(comparison, std::max(as_different, as_same));
}

std::optional<int> restarts_to_reach(const Comparison& comparison, double half_width) {
  return fewest_to_reach(comparison, std::log1p(half_width));
}

Interval difference_ms(double from_ms, double to_ms, const Comparison& comparison) {
  const double joint = std::log(from_ms / to_ms);
  const Interval& log_ratio = comparison.log_ratio;
  return {to_ms - from_ms, from_ms * std::expm1(-(joint + (log_ratio.high - log_ratio.value))),
          from_ms * std::expm1(-(joint - (log_ratio.value - log_ratio.low)))};
}

BreakEven break_even(const Interval& extra_start_ms, const Interval& difference, Direction verdict) {
  const bool faster = verdict == Direction::faster && difference.value < 0;
  const auto iterations = [faster](double start, double gain) {
    if (start <= 0) return 0.0;
    return faster && gain > 0 ? start / gain : infinity;
  };
  if (!faster && !(extra_start_ms.value <= 0))
    return {{}, verdict != Direction::inconclusive, verdict == Direction::inconclusive};
  return {{iterations(extra_start_ms.value, -difference.value), iterations(extra_start_ms.low, -difference.low),
           iterations(extra_start_ms.high, -difference.high)},
          false,
          false};
}

Interval range_of(std::span<const double> values) {
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {median(values), *low, *high};
}

}  // namespace strata::stats
