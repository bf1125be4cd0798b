// SPDX-License-Identifier: Apache-2.0
#include "stats/compare.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace strata::stats {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t enough = 5;         // differences from which a winsorised error means something
constexpr double median_variance = 1.35;  // of a median of three or four, in units of the mean's
constexpr int most_restarts = 10000;

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return nan;
  const double centre = mean(values);
  double squares = 0;
  for (double value : values) squares += (value - centre) * (value - centre);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

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
      df_known += static_cast<double>(trimmed.kept - 1);
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
    case Direction::not_resolved:
      break;
  }
  return "not_resolved";
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

Comparison compare(std::span<const std::vector<double>> restarts, std::optional<double> process_sigma) {
  Comparison out;
  for (const std::vector<double>& sample : restarts) {
    if (sample.empty()) continue;
    out.per_restart.push_back(sample.size() >= enough ? trimmed_mean(sample).value : median(sample));
    out.differences += sample.size();
  }
  if (out.per_restart.empty()) return out;
  const double value = mean(out.per_restart);
  const auto count = static_cast<double>(out.per_restart.size());
  out.scatter = standard_deviation(out.per_restart);
  const Within within = within_restarts(restarts);
  out.within_se = std::sqrt(within.mean_square);
  double half_width = infinity;
  if (process_sigma) {
    out.process_sigma = *process_sigma;
    const double between = 2 * *process_sigma * *process_sigma / count;
    if (within.df > 0) {
      // Student's t for the part that is estimated, the normal for the part that is known: the plain z interval when df
      // is large.
      const double inside = within.mean_square / count, t = student_t_quantile(0.995, within.df);
      out.standard_error = std::sqrt(inside + between);
      half_width = std::sqrt(t * t * inside + z99 * z99 * between);
    } else if (count >= 2) {  // one difference a restart: only their scatter shows the spread
      const double seen = out.scatter * out.scatter / count;
      out.standard_error = std::sqrt(std::max(seen, between));
      half_width = student_t_quantile(0.995, count - 1) * out.standard_error;
    }
  } else if (count >= 2) {
    out.standard_error = out.scatter / std::sqrt(count);
    half_width = student_t_quantile(0.995, count - 1) * out.standard_error;
  }
  out.log_ratio = around(value, half_width);
  return out;
}

Comparison compare_unpaired(std::span<const double> reference, std::span<const double> level, double process_sigma) {
  Comparison out;
  if (reference.empty() || level.empty()) return out;
  const double value = mean(reference) - mean(level);
  const std::size_t fewest = std::min(reference.size(), level.size());
  for (std::size_t i = 0; i < fewest; ++i) out.per_restart.push_back(reference[i] - level[i]);
  out.differences = fewest;
  out.process_sigma = process_sigma;
  out.log_ratio = around(value, infinity);
  if (fewest < 2) return out;
  out.scatter = standard_deviation(out.per_restart);
  const auto variance = [&](std::span<const double> times) {
    const double sd = std::max(standard_deviation(times), process_sigma);
    return sd * sd / static_cast<double>(times.size());
  };
  out.standard_error = std::sqrt(variance(reference) + variance(level));
  out.within_se = 0;
  out.log_ratio = around(value, student_t_quantile(0.995, static_cast<double>(fewest - 1)) * out.standard_error);
  return out;
}

Comparison compare_apart(std::span<const double> reference, std::span<const double> level, double process_sigma) {
  Comparison out = compare_unpaired(reference, level, process_sigma);
  if (reference.empty() || level.empty()) return out;
  const auto spread = [&](std::span<const double> times) {
    return times.size() < 2 ? process_sigma : std::max(standard_deviation(times), process_sigma);
  };
  const double a = spread(reference), b = spread(level);
  out.standard_error =
      std::sqrt(a * a / static_cast<double>(reference.size()) + b * b / static_cast<double>(level.size()));
  const bool known = a == process_sigma && b == process_sigma;
  const double df = static_cast<double>(reference.size() + level.size()) - 2;
  out.log_ratio = around(out.log_ratio.value, (known ? z99 : student_t_quantile(0.995, df)) * out.standard_error);
  return out;
}

bool too_busy(const Comparison& comparison, double dropped_share) {
  if (dropped_share > 0.6) return true;
  const double allowed =
      std::sqrt(comparison.within_se * comparison.within_se + 2 * comparison.process_sigma * comparison.process_sigma);
  return comparison.scatter > 3 * allowed;  // false where either is NaN
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

double smallest_visible(int restarts, double within_se, double process_sigma, double minimum_effect) {
  if (restarts < 1) return infinity;
  const double se = std::sqrt((within_se * within_se + 2 * process_sigma * process_sigma) / restarts);
  return std::expm1(std::max((z99 + z95_one_sided) * se, std::log1p(minimum_effect) + z95_one_sided * se));
}

double reachable_precision(int restarts, double process_sigma) {
  if (restarts < 1) return infinity;
  return std::expm1(z99 * std::sqrt(2.0 / restarts) * process_sigma);
}

std::optional<int> restarts_for_precision(double half_width, double within_se, double process_sigma) {
  const double one = std::sqrt(within_se * within_se + 2 * process_sigma * process_sigma);
  const double needed = std::pow(z99 * one / std::log1p(half_width), 2);
  if (!(half_width > 0) || !(needed <= most_restarts)) return std::nullopt;
  return std::max(1, static_cast<int>(std::ceil(needed - 1e-9)));
}

std::optional<int> restarts_to_resolve(const Comparison& comparison, double minimum_effect) {
  const double value = std::abs(comparison.log_ratio.value);
  if (std::isnan(value) || std::isnan(comparison.within_se)) return std::nullopt;
  double sigma = comparison.process_sigma;
  if (std::isnan(sigma)) {  // the scatter of restarts holds both parts
    const double between = comparison.scatter * comparison.scatter - comparison.within_se * comparison.within_se;
    if (std::isnan(between)) return std::nullopt;
    sigma = std::sqrt(std::max(between, 0.0) / 2);
  }
  const double as_different = value > std::log1p(minimum_effect) ? value : 0;
  const double as_same = std::log1p(2 * minimum_effect) - value;
  const double half_width = std::max(as_different, as_same);
  return restarts_for_precision(std::expm1(half_width), comparison.within_se, sigma);
}

Interval difference_ms(double from_ms, double to_ms, const Comparison& comparison) {
  const double joint = std::log(from_ms / to_ms);
  const Interval& log_ratio = comparison.log_ratio;
  return {to_ms - from_ms, from_ms * std::expm1(-(joint + (log_ratio.high - log_ratio.value))),
          from_ms * std::expm1(-(joint - (log_ratio.value - log_ratio.low)))};
}

BreakEven break_even(const Interval& extra_start_ms, const Interval& difference, Direction verdict) {
  if (verdict != Direction::faster || !(difference.value < 0)) return {{}, true};
  const auto iterations = [](double start, double gain) {
    if (start <= 0) return 0.0;
    return gain > 0 ? start / gain : infinity;
  };
  return {{iterations(extra_start_ms.value, -difference.value), iterations(extra_start_ms.low, -difference.low),
           iterations(extra_start_ms.high, -difference.high)},
          false};
}

Interval range_of(std::span<const double> values) {
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {median(values), *low, *high};
}

}  // namespace strata::stats
