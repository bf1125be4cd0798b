// SPDX-License-Identifier: Apache-2.0
// Expected numbers are SciPy 1.x / NumPy's (quantile, trim_mean, mstats.winsorize, t.ppf, chi2.ppf, beta.ppf), stated
// to 12 digits.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "stats/sample.hpp"

namespace strata::stats {
namespace {

const std::vector<double> sample{1.2, 3.4, 2.2, 9.9, 2.8, 2.4, -5.0, 2.6, 3.0, 2.1, 2.5, 2.7};

TEST(sample, quantiles_interpolate_like_numpy) {
  EXPECT_NEAR(quantile(sample, 0.10), 1.29, 1e-12);
  EXPECT_NEAR(quantile(sample, 0.25), 2.175, 1e-12);
  EXPECT_NEAR(median(sample), 2.55, 1e-12);
  EXPECT_NEAR(quantile(sample, 0.90), 3.36, 1e-12);
  EXPECT_NEAR(quantile(sample, 0.99), 9.185, 1e-12);
  EXPECT_EQ(quantile(std::vector<double>{7}, 0.3), 7);
}

TEST(sample, of_nothing_is_not_a_number) {
  const std::vector<double> none;
  EXPECT_TRUE(std::isnan(median(none)));
  EXPECT_TRUE(std::isnan(trimmed_mean(none).value));
  EXPECT_TRUE(std::isnan(summarise(none).p99));
  EXPECT_TRUE(histogram(none).counts.empty());
}

TEST(sample, trimmed_mean_has_yuens_standard_error) {
  const TrimmedMean trimmed = trimmed_mean(sample);
  EXPECT_NEAR(trimmed.value, 2.5375, 1e-12);
  EXPECT_NEAR(trimmed.standard_error, 0.16086633019521576, 1e-12);
  EXPECT_EQ(trimmed.used, 8u);
  EXPECT_TRUE(std::isnan(trimmed_mean(std::vector<double>{1}).standard_error));
}

TEST(sample, trimmed_mean_shrugs_off_an_outlier) {
  std::vector<double> wild = sample;
  wild[3] = 1e9;
  EXPECT_EQ(trimmed_mean(wild).value, trimmed_mean(sample).value);
}

TEST(sample, robust_sd_scales_the_median_deviation) {
  EXPECT_NEAR(robust_sd(sample), 0.5930408874022404, 1e-12);
}

// F tables: 95% quantiles of (5, 15) and (2, 10), the 99% one of (5, 15); with one degree of freedom F is t squared.
TEST(sample, chances_of_larger_ratios_of_variances_match_the_tables_of_f) {
  EXPECT_NEAR(f_above(2.9013, 5, 15), 0.05, 2e-6);
  EXPECT_NEAR(f_above(4.1028, 2, 10), 0.05, 2e-6);
  EXPECT_NEAR(f_above(4.5556, 5, 15), 0.01, 2e-6);
  EXPECT_NEAR(f_above(2.5 * 2.5, 1, 7), student_t_two_sided(2.5, 7), 1e-12);
  EXPECT_EQ(f_above(0, 5, 15), 1);
  EXPECT_TRUE(std::isnan(f_above(1, 0, 15)));
}

TEST(sample, student_t_quantiles_match_scipy) {
  EXPECT_NEAR(student_t_quantile(0.995, 1), 63.656741162871526, 1e-8);
  EXPECT_NEAR(student_t_quantile(0.995, 2), 9.924843200918287, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.995, 3.5), 5.085702223091256, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.995, 7), 3.4994832973504924, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.995, 1000), 2.580754698065951, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.9, 5), 1.4758840488244815, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.1, 5), -1.4758840488244815, 1e-10);
  EXPECT_TRUE(std::isnan(student_t_quantile(0.9, 0)));
}

TEST(sample, chi_square_quantiles_match_scipy) {
  EXPECT_NEAR(chi_square_quantile(0.025, 7), 1.689869180677355, 1e-10);
  EXPECT_NEAR(chi_square_quantile(0.975, 7), 16.012764274629326, 1e-10);
  EXPECT_NEAR(chi_square_quantile(0.025, 14), 5.628726103039731, 1e-10);
  EXPECT_NEAR(chi_square_quantile(0.975, 1), 5.023886187314888, 1e-10);
  EXPECT_NEAR(chi_square_quantile(0.5, 200), 199.33372983863097, 1e-8);
}

TEST(sample, bounds_a_rate_from_the_alarms_seen) {
  EXPECT_NEAR(binomial_upper_bound(0, 7), 0.34816365513116077, 1e-12);
  EXPECT_NEAR(binomial_upper_bound(0, 300), 0.009936081944457708, 1e-12);
  EXPECT_NEAR(binomial_upper_bound(1, 20), 0.2161061642068473, 1e-12);
  EXPECT_NEAR(binomial_upper_bound(3, 44), 0.16689884168360763, 1e-12);
  EXPECT_EQ(binomial_upper_bound(5, 5), 1);
  EXPECT_EQ(binomial_upper_bound(0, 0), 1);
}

TEST(sample, summary_says_median_tail_and_least) {
  std::vector<double> hundred(101);
  std::iota(hundred.begin(), hundred.end(), 0);
  const Summary summary = summarise(hundred);
  EXPECT_EQ(summary.median, 50);
  EXPECT_EQ(summary.p90, 90);
  EXPECT_EQ(summary.p99, 99);
  EXPECT_EQ(summary.min, 0);
  EXPECT_EQ(summary.count, 101u);
}

TEST(sample, histogram_counts_every_value_once_and_keeps_the_tail_in_one_bar) {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(10 + 0.001 * i);
  values.push_back(500);
  const Histogram bars = histogram(values);
  ASSERT_EQ(bars.edges.size(), bars.counts.size() + 1);
  EXPECT_TRUE(std::is_sorted(bars.edges.begin(), bars.edges.end()));
  EXPECT_EQ(std::accumulate(bars.counts.begin(), bars.counts.end(), std::size_t{0}), values.size());
  EXPECT_EQ(bars.edges.front(), 10);
  EXPECT_EQ(bars.edges.back(), 500);
  EXPECT_LT(bars.edges[bars.edges.size() - 2], 11) << "the body's bars are not stretched by the outlier";
  EXPECT_LE(bars.counts.size(), 60u);
}

TEST(sample, histogram_of_equal_values_is_one_bar) {
  const Histogram bars = histogram(std::vector<double>(5, 3.0));
  EXPECT_EQ(bars.counts, std::vector<std::size_t>{5});
  const Histogram nearly = histogram(std::vector<double>{3, 3, 3, 3, 3, 3, 3, 4});
  EXPECT_EQ(std::accumulate(nearly.counts.begin(), nearly.counts.end(), std::size_t{0}), 8u);
}

// By scipy.stats.binom.sf(hits - 1, trials, share).
TEST(BinomialChance, is_scipys) {
  EXPECT_NEAR(binomial_chance(12, 24, 1.0 / 3), 0.06765877903243141, 1e-14);
  EXPECT_NEAR(binomial_chance(20, 20, 0.5), 9.5367431640625e-07, 1e-18);
  EXPECT_EQ(binomial_chance(0, 5, 0.1), 1);
  EXPECT_EQ(binomial_chance(6, 5, 0.1), 0);
}

TEST(LowerQuartile, is_a_value_of_the_sample_with_a_quarter_below) {
  EXPECT_EQ(lower_quartile(std::vector<double>{9, 1, 5}), 1);
  EXPECT_EQ(lower_quartile(std::vector<double>{9, 1, 5, 7, 3}), 3);
  EXPECT_TRUE(std::isnan(lower_quartile({})));
}

}  // namespace
}  // namespace strata::stats
