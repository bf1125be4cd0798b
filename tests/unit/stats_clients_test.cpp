// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "stats/clients.hpp"
#include "stats/schedule.hpp"

namespace strata::stats {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

// `requests` of 10 ns each, back to back.
ClientTimes client(std::int64_t start, std::int64_t requests) {
  ClientTimes one{start, 10 * requests, requests, {}, {}};
  for (std::int64_t i = 1; i <= requests; ++i) {
    one.latency_ns.push_back(10);
    one.done_ns.push_back(10 * i);
  }
  return one;
}

TEST(InCommon, adds_the_rates_of_clients_and_leaves_out_requests_outside_the_time_that_all_share) {
  const std::vector<ClientTimes> clients{client(1000, 100), client(1020, 98)};
  const auto together = in_common(clients);
  ASSERT_TRUE(together);
  EXPECT_NEAR(together->requests_per_s, 2 * 1e9 / 10, 1);
  EXPECT_EQ(together->latency_ns.size(), 98u + 98u);  // the first client's first two came before the second one began
}

TEST(InCommon, refuses_clients_that_did_not_run_at_the_same_time) {
  EXPECT_FALSE(in_common(std::vector{client(0, 100), client(2000, 100)}));
  EXPECT_FALSE(in_common(std::vector{client(0, 100), client(200, 100)}));
  EXPECT_FALSE(in_common({}));
  EXPECT_TRUE(in_common(std::vector{client(0, 100), client(50, 100)}));
}

TEST(InCommon, takes_single_long_requests_that_end_apart) {
  ClientTimes slow{0, 150, 1, {150}, {150}};
  EXPECT_TRUE(in_common(std::vector{slow, ClientTimes{0, 100, 1, {100}, {100}}}));
}

TEST(OverRepetitions, is_the_mean_of_logs_with_students_t) {
  const auto rate = over_repetitions(std::vector{90.0, 100.0, 110.0}, 0.015);
  EXPECT_NEAR(rate.value, std::cbrt(90.0 * 100 * 110), 1e-9);
  // by hand: standard deviation of the three logs 0.10050, t(0.995, 2) = 9.9248, divided by sqrt(3)
  EXPECT_NEAR(std::log(rate.high / rate.value), 9.9248 * 0.10050 / std::sqrt(3.0), 0.001);
  EXPECT_NEAR(rate.low * rate.high, rate.value * rate.value, 1e-6);
  EXPECT_TRUE(std::isinf(over_repetitions(std::vector{5.0}, 0.015).high));
  EXPECT_TRUE(std::isnan(over_repetitions({}, 0.015).value));
}

TEST(OverRepetitions, are_never_narrower_than_the_assumed_process_effect) {
  const auto rate = over_repetitions(std::vector{100.0, 100.0, 100.0}, 0.015);
  EXPECT_NEAR(std::log(rate.high / rate.value), 2.5758 * 0.015 / std::sqrt(3.0), 1e-5);
}

TEST(QuantileOverRepetitions, is_as_wide_as_what_processes_differ_by) {
  // Each repetition alone bounds its p90 within 3%, and they part by 20%.
  std::vector<std::vector<double>> repetitions(3);
  for (std::size_t r = 0; r < 3; ++r)
    for (int i = 0; i < 1000; ++i) repetitions[r].push_back((1 + 0.1 * static_cast<double>(r)) * (1 + i * 1e-4));
  const auto p90 = quantile_over_repetitions(repetitions, 0.9, 0.015);
  std::vector<double> all;
  for (const auto& one : repetitions) all.insert(all.end(), one.begin(), one.end());
  EXPECT_EQ(p90.value, quantile_interval(all, 0.9).value);
  EXPECT_GT(p90.high / p90.value, 1.5) << "t(99.5%, 2) of three that part by 9% each";
  const auto calm = quantile_over_repetitions(std::vector(3, repetitions[0]), 0.9, 0.015);
  EXPECT_NEAR(calm.high / calm.value, std::exp(2.5758 * 0.015 / std::sqrt(3.0)), 1e-3);
  EXPECT_TRUE(std::isnan(quantile_over_repetitions({}, 0.9, 0.015).value));
}

TEST(QuantileOverRepetitions, has_no_upper_end_where_the_values_are_too_few) {
  EXPECT_TRUE(std::isinf(quantile_over_repetitions(std::vector(3, one_to(20)), 0.99, 0.015).high));
}

TEST(QuantileInterval, is_that_of_the_binomial_distribution) {
  // n = 100: P(X <= 36) = 0.0033 and P(X <= 37) = 0.0060; so the 37th value lies below the median with 99.67%, and the
  // 64th above it.
  const auto median_of = quantile_interval(one_to(100), 0.5);
  EXPECT_EQ(median_of.low, 37);
  EXPECT_EQ(median_of.high, 64);
  EXPECT_DOUBLE_EQ(median_of.value, 50.5);
}

TEST(QuantileInterval, has_no_upper_end_until_there_are_enough_values) {
  EXPECT_EQ(needed_for_quantile(0.99), 528);
  EXPECT_TRUE(std::isinf(quantile_interval(one_to(527), 0.99).high));
  EXPECT_EQ(quantile_interval(one_to(528), 0.99).high, 528);
  EXPECT_TRUE(std::isinf(quantile_interval(one_to(3), 0.5).low));
  EXPECT_TRUE(std::isnan(quantile_interval({}, 0.5).value));
}

TEST(QuantileInterval, holds_the_true_quantile_as_often_as_it_says) {
  Random random(11);
  int inside = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<double> sample;
    for (int i = 0; i < 800; ++i) sample.push_back(static_cast<double>(random.next() >> 11) * 0x1p-53);
    const auto interval = quantile_interval(sample, 0.9);
    inside += interval.low <= 0.9 && 0.9 <= interval.high;
  }
  EXPECT_GE(inside, 388);  // 99% of 400 is 396; below 388 comes by chance less than once in 3,000
}

LoadPoint point(double rate, double low, double value, double high) {
  return {rate, {value, low, high}};
}

TEST(ChoosePoint, takes_the_highest_rate_of_those_that_surely_meet_the_limit) {
  const std::vector points{point(50, 8, 9, 10), point(80, 17, 18, 19), point(120, 19, 20, 23)};
  const auto chosen = choose_point(points, 20);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->index, 1u);
  EXPECT_EQ(chosen->meets, MeetsLimit::yes);
}

TEST(ChoosePoint, says_maybe_where_the_interval_holds_the_limit_and_names_the_nearest_where_none_does) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const std::vector maybe{point(50, 15, 18, infinite), point(80, 18, 21, 25), point(90, 30, 31, 32)};
  EXPECT_EQ(choose_point(maybe, 20)->index, 1u);
  EXPECT_EQ(choose_point(maybe, 20)->meets, MeetsLimit::maybe);
  EXPECT_EQ(choose_point(maybe, 10)->index, 0u);
  EXPECT_EQ(choose_point(maybe, 10)->meets, MeetsLimit::no);
  EXPECT_FALSE(choose_point({}, 10));
}

}  // namespace
}  // namespace strata::stats
