// SPDX-License-Identifier: Apache-2.0
#include "stats/learned.hpp"

#include <algorithm>

namespace strata::stats {

Learned pool(std::span<const Learned> runs) {
  Learned all;
  for (const auto& one : runs) {
    if (!one.known()) continue;
    all.variance += one.df * one.variance;
    all.within += one.df * one.within;
    all.df += one.df;
    all.restarts += one.restarts;
    all.runs += one.runs;
  }
  if (!all.known()) return {};
  all.variance /= all.df;
  all.within /= all.df;
  // How much more the runs' variances part than chance makes those of one spread part: 1 if not at all.
  double dispersion = 1;
  if (all.runs > 1 && all.variance > 0) {
    double squares = 0;
    for (const auto& run : runs) {
      const double off = run.variance / all.variance - 1;
      squares += run.df / 2 * off * off;
    }
    dispersion = std::max(1.0, squares / (all.runs - 1));
  }
  all.df = std::min(all.df, most_learned_df) / dispersion;
  return all;
}

}  // namespace strata::stats
