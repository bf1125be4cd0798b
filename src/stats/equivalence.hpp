// SPDX-License-Identifier: Apache-2.0
// Whether two trainings end alike, from paired differences over repeats: two one-sided tests (Schuirmann 1987) for
// "equivalent", Student's t for "different", Holm (1979) over several levels. Rules: docs/training.md, "Does a
// level learn as the reference does?".
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace strata::stats {

enum class EquivalenceVerdict { equivalent, different, inconclusive };
std::string_view to_string(EquivalenceVerdict likeness);

inline constexpr double kEquivalenceAlpha = 0.05;  // of both tests

// Of the mean of paired differences (level minus reference); half widths of its 90% and 95% intervals.
struct PairedTest {
  int repeats = 0;
  double mean = 0, deviation = 0;  // of the differences
  double half90 = 0, half95 = 0;   // infinite with fewer than two repeats
  double floor = 0;                // that no half width is below
  double p = 1;                    // two-sided, of no difference

  bool excludes_zero() const { return mean - half95 > 0 || mean + half95 < 0; }
};

// `floor`: the least half width, as one test image's worth, since scores move by whole images. Differences of repeats
// that are the same to the bit have no scatter, and a floor all the same.
PairedTest paired_test(std::span<const double> differences, double floor);

// Which of several hypotheses are rejected at `alpha` for all of them together (Holm 1979), in their order.
std::vector<bool> holm(std::span<const double> p, double alpha);

// equivalent: the 90% interval lies within +-margin (whether or not it excludes 0). different: `rejected` by Holm and
// the mean outside the margin. inconclusive: anything else.
EquivalenceVerdict judge_likeness(const PairedTest& test, double margin, bool rejected);

// Fewest repeats, up to 1000, at which one comparison would be decided, if mean and scatter stay what they are;
// nullopt: more, or fewer than two repeats are known.
std::optional<int> repeats_to_decide(const PairedTest& test, double margin);

}  // namespace strata::stats
