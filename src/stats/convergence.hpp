// SPDX-License-Identifier: Apache-2.0
// MLPerf's check of reference convergence points (RCP): is a mean of epochs to a target too small to be that of the
// reference? Rule: mlcommons/logging, rcp_checker, as of commit e6ba2a9 (training 5.0), for a batch size that the
// reference has; written anew. Since August 2024 that code takes the deviation of all runs, where MLPerf's rules
// still say without the extreme ones.
#pragma once

#include <string_view>
#include <vector>

namespace strata::stats {

inline constexpr std::string_view kRcpVersion = "RCP check of MLPerf training 5.0 (mlcommons/logging e6ba2a9)";
inline constexpr int kRcpFewestRuns = 5;          // of a submission of an image classifier
inline constexpr int kRcpFewestEvaluations = 20;  // of a run: with fewer, runs end at the same one, and have no scatter

// Epochs to the target over runs.
struct Convergence {
  int runs = 0, never = 0;  // `never`: runs that did not reach it
  double mean = 0;          // without the fastest and the slowest run; infinite: more than one never did
  double deviation = 0;     // population's, of all runs; infinite: one never did

  int runs_used() const { return runs - 2; }
  bool converges() const { return never <= 1; }  // as the rule has it
};

// `epochs`: of each run, infinite where it did not reach the target; at least three.
Convergence convergence(std::vector<double> epochs);

// The smallest mean of m = `runs_used` runs that is not faster than the reference, by a one-sided t test at 5% of two
// samples that both have its deviation: mean - t(.95, df) s sqrt(1/n + 1/m), df = n + m - 2, n the runs that its mean
// has; 0 at least. NaN: there is none, since a run of the reference never reached the target, or df is 0.
double fewest_epochs(const Convergence& reference, int runs_used);

}  // namespace strata::stats
