// SPDX-License-Identifier: Apache-2.0
#include "stats/sample.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace strata::stats {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> sorted(std::span<const double> sample) {
  std::vector<double> values(sample.begin(), sample.end());
  std::sort(values.begin(), values.end());
  return values;
}

double quantile_of_sorted(std::span<const double> values, double q) {
  if (values.empty()) return nan;
  const double at = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

// Continued fraction of the incomplete beta function, by Lentz's method (DLMF 8.17.22).
double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  const auto away_from_zero = [](double v) { return std::abs(v) < tiny ? tiny : v; };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int m = 1; m <= 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < 1e-15) break;
  }
  return fraction;
}

// Regularised incomplete beta function I_x(a, b).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// Regularised lower incomplete gamma function P(a, x), by its power series (DLMF 8.11.4); every term is positive.
double incomplete_gamma(double a, double x) {
  if (x <= 0) return 0;
  double term = std::exp(a * std::log(x) - x - std::lgamma(a + 1)), sum = term;
  for (int n = 1; n < 100000 && (term > sum * 1e-16 || n < x); ++n) sum += term *= x / (a + n);
  return std::min(sum, 1.0);
}

// Where an increasing function reaches `target`, to the last bits.
double where(const std::function<double(double)>& increasing, double target, double low, double high) {
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = 0.5 * (low + high);
    if (middle == low || middle == high) break;
    (increasing(middle) < target ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

double mean(std::span<const double> sample) {
  return std::accumulate(sample.begin(), sample.end(), 0.0) / static_cast<double>(sample.size());
}

double standard_deviation(std::span<const double> sample) {
  if (sample.size() < 2) return nan;
  const double centre = mean(sample);
  double squares = 0;
  for (double value : sample) squares += (value - centre) * (value - centre);
  return std::sqrt(squares / static_cast<double>(sample.size() - 1));
}

double quantile(std::span<const double> sample, double q) {
  return quantile_of_sorted(sorted(sample), q);
}

double median(std::span<const double> sample) {
  return quantile(sample, 0.5);
}

double lower_quartile(std::span<const double> sample) {
  if (sample.empty()) return nan;
  std::vector<double> sorted(sample.begin(), sample.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 4);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

double robust_sd(std::span<const double> sample) {
  const double centre = median(sample);
  std::vector<double> deviations;
  for (double value : sample) deviations.push_back(std::abs(value - centre));
  return 1.482602218505602 * median(deviations);
}

TrimmedMean trimmed_mean(std::span<const double> sample) {
  const std::vector<double> values = sorted(sample);
  const std::size_t n = values.size(), cut = n / 5, used = n - 2 * cut;
  if (n == 0) return {.value = nan, .standard_error = nan, .count = 0, .used = 0};
  double sum = 0, winsorised_sum = 0, squares = 0;
  const auto winsorised = [&](std::size_t i) { return values[std::clamp(i, cut, n - cut - 1)]; };
  for (std::size_t i = cut; i < n - cut; ++i) sum += values[i];
  for (std::size_t i = 0; i < n; ++i) winsorised_sum += winsorised(i);
  const double centre = winsorised_sum / static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i) squares += (winsorised(i) - centre) * (winsorised(i) - centre);
  const double h = static_cast<double>(used);
  return {
      .value = sum / h, .standard_error = n < 2 ? nan : std::sqrt(squares / (h * (h - 1))), .count = n, .used = used};
}

Summary summarise(std::span<const double> sample) {
  const std::vector<double> values = sorted(sample);
  return {.median = quantile_of_sorted(values, 0.5),
          .p90 = quantile_of_sorted(values, 0.9),
          .p99 = quantile_of_sorted(values, 0.99),
          .min = values.empty() ? nan : values.front(),
          .count = values.size()};
}

Histogram histogram(std::span<const double> sample, int most_bars) {
  const std::vector<double> values = sorted(sample);
  if (values.empty()) return {};
  const double low = values.front(), high = values.back(), body = quantile_of_sorted(values, 0.99);
  if (low == high) return {{low, std::nextafter(high, std::numeric_limits<double>::infinity())}, {values.size()}};
  const double spread = quantile_of_sorted(values, 0.75) - quantile_of_sorted(values, 0.25);
  const double width = 2 * spread / std::cbrt(static_cast<double>(values.size()));
  int bars = 1;
  if (width > 0)
    bars = static_cast<int>(
        std::clamp(std::ceil((body - low) / width), 1.0, static_cast<double>(std::max(most_bars, 2) - 1)));
  Histogram out;
  if (body > low)
    for (int i = 0; i < bars; ++i) out.edges.push_back(low + (body - low) * i / bars);
  else
    out.edges.push_back(low);
  if (body > low && body < high) out.edges.push_back(body);
  out.edges.push_back(high);
  out.counts.assign(out.edges.size() - 1, 0);
  for (double value : values) {
    const auto above = std::upper_bound(out.edges.begin(), out.edges.end(), value) - out.edges.begin();
    ++out.counts[std::min(static_cast<std::size_t>(above) - 1, out.counts.size() - 1)];
  }
  return out;
}

double student_t_quantile(double p, double df) {
  if (!(p > 0 && p < 1 && df > 0)) return nan;
  if (p < 0.5) return -student_t_quantile(1 - p, df);
  const auto probability = [df](double t) { return 1 - 0.5 * incomplete_beta(df / 2, 0.5, df / (df + t * t)); };
  double high = 2;
  while (high < 1e12 && probability(high) < p) high *= 2;
  return where(probability, p, 0, high);
}

double student_t_two_sided(double t, double df) {
  return df > 0 ? incomplete_beta(df / 2, 0.5, df / (df + t * t)) : nan;
}

double f_above(double f, double df1, double df2) {
  return df1 > 0 && df2 > 0 ? incomplete_beta(df2 / 2, df1 / 2, df2 / (df2 + df1 * f)) : nan;
}

double chi_square_quantile(double p, double df) {
  if (!(p > 0 && p < 1 && df > 0)) return nan;
  const auto probability = [df](double x) { return incomplete_gamma(df / 2, x / 2); };
  double high = df + 10;
  while (high < 1e12 && probability(high) < p) high *= 2;
  return where(probability, p, 0, high);
}

double binomial_upper_bound(int hits, int trials) {
  if (trials <= 0 || hits >= trials) return 1;
  // P(at most `hits` of `trials` at rate r) = 1 - I_r(hits + 1, trials - hits); the bound is where it falls to 5%.
  return where([=](double rate) { return incomplete_beta(hits + 1, trials - hits, rate); }, 0.95, 0, 1);
}

double binomial_chance(int hits, int trials, double share) {
  if (hits <= 0) return 1;
  return hits > trials ? 0 : incomplete_beta(hits, trials - hits + 1, share);
}

}  // namespace strata::stats
