// SPDX-License-Identifier: Apache-2.0
// Statistics of one sample and the few distributions that intervals need. Pure functions; NaN in, NaN out only where
// said.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace strata::stats {

inline constexpr double z99 = 2.5758293035489004;  // two-sided 99% of the normal distribution
inline constexpr double z95_one_sided = 1.6448536269514722;

// NaN for an empty sample.
double mean(std::span<const double> sample);
// NaN for fewer than two values.
double standard_deviation(std::span<const double> sample);

// Quantile q in [0,1] by linear interpolation between order statistics (type 7, NumPy's default). NaN for an empty
// sample.
double quantile(std::span<const double> sample, double q);
double median(std::span<const double> sample);
// The value that a quarter of the others lie below, one of the sample. NaN for an empty sample.
double lower_quartile(std::span<const double> sample);

// 1.4826 times the median absolute deviation: the standard deviation, if the sample is normal. NaN for an empty sample.
double robust_sd(std::span<const double> sample);

// 20% trimmed mean with the winsorised standard error (Yuen 1974). `used`: values left after trimming; df = used - 1.
struct TrimmedMean {
  double value;           // NaN for an empty sample
  double standard_error;  // NaN for fewer than two values
  std::size_t count, used;
};
TrimmedMean trimmed_mean(std::span<const double> sample);

// What a table shows of a sample; all NaN when empty.
struct Summary {
  double median, p90, p99, min;
  std::size_t count;
};
Summary summarise(std::span<const double> sample);

// Bars for a distribution with a long tail: equal widths (Freedman-Diaconis) up to the 99% quantile, then one last bar
// up to the maximum. edges.size() == counts.size() + 1, or both empty.
struct Histogram {
  std::vector<double> edges;
  std::vector<std::size_t> counts;
};
Histogram histogram(std::span<const double> sample, int most_bars = 60);

// Quantile p of Student's t with df > 0 degrees of freedom (not necessarily whole).
double student_t_quantile(double p, double df);
// The probability that |t| is larger, of Student's t with df > 0 degrees of freedom.
double student_t_two_sided(double t, double df);
// The probability that F is larger, of the ratio of two variances with df1 and df2 > 0 degrees of freedom.
double f_above(double f, double df1, double df2);
// Quantile p of chi-square with df > 0 degrees of freedom.
double chi_square_quantile(double p, double df);
// Upper 95% bound (one-sided, Clopper-Pearson) of a rate of which `hits` of `trials` were seen. 1 for no trials.
double binomial_upper_bound(int hits, int trials);
// The chance of `hits` or more of `trials`, each with the chance `share`. Where chances differ by trial and `share` is
// their mean, it is no less than the true one for hits above the mean number by one or more (Hoeffding 1956).
double binomial_chance(int hits, int trials, double share);

}  // namespace strata::stats
