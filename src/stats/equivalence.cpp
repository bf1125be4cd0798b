// SPDX-License-Identifier: Apache-2.0
#include "stats/equivalence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stats/sample.hpp"

namespace strata::stats {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int kMostRepeats = 1000;

double half_width(double deviation, int repeats, double confidence, double floor) {
  if (repeats < 2) return kInfinite;
  const double t = student_t_quantile((1 + confidence) / 2, repeats - 1);
  return std::max(floor, t * deviation / std::sqrt(static_cast<double>(repeats)));
}

PairedTest test_of(double mean, double deviation, int repeats, double floor) {
  PairedTest test{.repeats = repeats, .mean = mean, .deviation = deviation, .floor = floor};
  test.half90 = half_width(deviation, repeats, 1 - 2 * kEquivalenceAlpha, floor);
  test.half95 = half_width(deviation, repeats, 1 - kEquivalenceAlpha, floor);
  if (repeats < 2) return test;
  // The standard error that the floored interval has.
  const double error = test.half95 / student_t_quantile(1 - kEquivalenceAlpha / 2, repeats - 1);
  if (error > 0)
    test.p = student_t_two_sided(std::abs(mean) / error, repeats - 1);
  else
    test.p = mean == 0 ? 1 : 0;
  return test;
}

}  // namespace

std::string_view to_string(EquivalenceVerdict likeness) {
  switch (likeness) {
    case EquivalenceVerdict::equivalent:
      return "equivalent";
    case EquivalenceVerdict::different:
      return "different";
    case EquivalenceVerdict::inconclusive:
      break;
  }
  return "inconclusive";
}

PairedTest paired_test(std::span<const double> differences, double floor) {
  if (differences.empty()) return test_of(0, 0, 0, floor);
  const double deviation = differences.size() < 2 ? 0 : standard_deviation(differences);
  return test_of(mean(differences), deviation, static_cast<int>(differences.size()), floor);
}

std::vector<bool> holm(std::span<const double> p, double alpha) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<bool> rejected(p.size(), false);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!(p[order[i]] <= alpha / static_cast<double>(order.size() - i))) break;
    rejected[order[i]] = true;
  }
  return rejected;
}

EquivalenceVerdict judge_likeness(const PairedTest& test, double margin, bool rejected) {
  if (test.repeats < 2) return EquivalenceVerdict::inconclusive;
  if (std::abs(test.mean) + test.half90 <= margin) return EquivalenceVerdict::equivalent;
  if (rejected && std::abs(test.mean) > margin) return EquivalenceVerdict::different;
  return EquivalenceVerdict::inconclusive;
}

std::optional<int> repeats_to_decide(const PairedTest& test, double margin) {
  if (test.repeats < 2) return std::nullopt;
  for (int repeats = 2; repeats <= kMostRepeats; ++repeats) {
    const auto then = test_of(test.mean, test.deviation, repeats, test.floor);
    if (judge_likeness(then, margin, then.excludes_zero()) != EquivalenceVerdict::inconclusive) return repeats;
  }
  return std::nullopt;
}

}  // namespace strata::stats
