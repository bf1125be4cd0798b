// SPDX-License-Identifier: Apache-2.0
// The one rule that makes a 99% interval from restarts: earlier runs of the same levels may narrow it as far as these
// restarts agree with them; an assumed process effect may widen it and never narrow it. Comparisons, rates, quantiles,
// trials and everything that is planned from them use it. Why: docs/measuring.md.
#pragma once

#include <limits>
#include <string_view>

namespace strata::stats {

// The most that processes of one program were seen to differ by, whatever the level (relative standard deviation).
// Fewer than three restarts show no spread that an interval could rest on; this stands in for it.
inline constexpr double most_process_sigma = 0.10;
inline constexpr int fewest_with_scatter = 3;

// What is known of a value (a logarithm) that is a mean over restarts.
struct Evidence {
  int restarts = 0;          // the fewer of the two sides where sides were measured apart
  double processes = 0;      // variance of the value in units of one process's: 2/R of pairs, 1/R of one side alone
  double process_sigma = 0;  // assumed or calibrated, as 0.015; 0: nothing is assumed
  // Variance of the value from within restarts, and its degrees of freedom; NaN: unknown, 0 with infinite df: none.
  double within = 0, within_df = std::numeric_limits<double>::infinity();
  double seen = std::numeric_limits<double>::quiet_NaN();  // variance of the value from the restarts' own scatter
  // The same from the scatter of as many restarts of earlier runs, and its degrees of freedom; 0: nothing is known.
  double learned = 0, learned_df = 0;
};

// Which part of the evidence the interval rests on.
enum class Basis { nothing, assumed, restarts, most, learned };
std::string_view to_string(Basis basis);

struct HalfWidth {
  double width = std::numeric_limits<double>::infinity();  // of the 99% interval
  double standard_error = std::numeric_limits<double>::quiet_NaN();
  double one_sided_95 = std::numeric_limits<double>::infinity();  // quantile for power, of the same distribution
  Basis basis = Basis::nothing;
};

// From three restarts on, where earlier runs are known: Student's t on the variance of both together, each by its
// degrees of freedom, the earlier ones' fewer where these restarts part by more than they explain. Where none are: the
// wider of the assumed process effect (normal, Student's t for the part within restarts) and Student's t over the
// restarts' own estimates. Fewer restarts: the largest process effect seen of any level; Student's t where two part by
// more than that. Infinite: no restart, or fewer than three without a spread within.
HalfWidth half_width(const Evidence& evidence);

// What the interval would be if the assumption were the truth.
double assumed_half_width(const Evidence& evidence);

}  // namespace strata::stats
