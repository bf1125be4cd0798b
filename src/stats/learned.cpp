// SPDX-License-Identifier: Apache-2.0
#include "stats/learned.hpp"

#include <algorithm>

namespace strata::stats {

LearnedSpread pool(std::span<const LearnedSpread> runs) {
  LearnedSpread all;
  for (const auto& earlier : runs) {
    if (!earlier.known()) continue;
    all.variance += earlier.df * earlier.variance;
    all.within += earlier.df * earlier.within;
    all.df += earlier.df;
    all.restarts += earlier.restarts;
    all.runs += earlier.runs;
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
