// SPDX-License-Identifier: Apache-2.0
#include "stats/half_width.hpp"

#include <algorithm>
#include <cmath>

#include "stats/sample.hpp"

namespace strata::stats {
namespace {

double within_t(const Evidence& evidence) {
  return std::isinf(evidence.within_df) ? z99 : student_t_quantile(0.995, evidence.within_df);
}

// Student's t for the part that is estimated, the normal for the part that is taken as known.
HalfWidth with_known(const Evidence& evidence, double sigma, Basis basis) {
  const double between = evidence.processes * sigma * sigma, t = within_t(evidence);
  return {.width = std::sqrt(t * t * evidence.within + z99 * z99 * between),
          .standard_error = std::sqrt(evidence.within + between),
          .one_sided_95 = z95_one_sided,
          .basis = basis};
}

HalfWidth with_scatter(const Evidence& evidence) {
  const double df = evidence.restarts - 1, error = std::sqrt(evidence.seen);
  return {.width = student_t_quantile(0.995, df) * error,
          .standard_error = error,
          .one_sided_95 = student_t_quantile(0.95, df),
          .basis = Basis::restarts};
}

// Earlier restarts count in full while a scatter of at least this run's is to be expected of them so often.
constexpr double in_full = 0.1;

// The power prior of Ibrahim and Chen (2000), with a weight that follows from how well the two agree: restarts that
// part by more than the earlier ones explain speak the more for themselves.
HalfWidth with_learned(const Evidence& evidence) {
  const double own_df = evidence.restarts - 1;
  const double explained = f_above(evidence.seen / evidence.learned, own_df, evidence.learned_df);
  const double earlier_df =
      evidence.learned > 0 ? evidence.learned_df * std::min(1.0, explained / in_full) : 0;  // 0: it explains nothing
  const double df = earlier_df + own_df;
  const double variance = (earlier_df * evidence.learned + own_df * evidence.seen) / df;
  const double error = std::sqrt(std::isnan(evidence.within) ? variance : std::max(variance, evidence.within));
  return {.width = student_t_quantile(0.995, df) * error,
          .standard_error = error,
          .one_sided_95 = student_t_quantile(0.95, df),
          .basis = Basis::learned};
}

}  // namespace

std::string_view to_string(Basis basis) {
  switch (basis) {
    case Basis::assumed:
      return "assumed";
    case Basis::restarts:
      return "restarts";
    case Basis::most:
      return "most";
    case Basis::learned:
      return "learned";
    case Basis::nothing:
      break;
  }
  return "nothing";
}

double assumed_half_width(const Evidence& evidence) {
  if (evidence.restarts < 1 || std::isnan(evidence.within)) return std::numeric_limits<double>::infinity();
  return with_known(evidence, evidence.process_sigma, Basis::assumed).width;
}

HalfWidth half_width(const Evidence& evidence) {
  const bool spread_within = !std::isnan(evidence.within);
  if (evidence.restarts < 1) return {};
  if (evidence.restarts < fewest_with_scatter) {
    if (!spread_within) return {};
    const auto most = with_known(evidence, std::max(evidence.process_sigma, most_process_sigma), Basis::most);
    const bool part = evidence.restarts > 1 && std::sqrt(evidence.seen) > most.width;  // false where `seen` is NaN
    return part ? with_scatter(evidence) : most;
  }
  if (std::isnan(evidence.seen)) return {};
  if (evidence.learned_df > 0) return with_learned(evidence);
  // The restarts' scatter holds what is within them, so that an unknown spread there is no gap.
  Evidence assumed = evidence;
  if (!spread_within) {
    assumed.within = 0;
    assumed.within_df = std::numeric_limits<double>::infinity();
  }
  const auto narrowest = with_known(assumed, evidence.process_sigma, Basis::assumed);
  const auto scatter = with_scatter(evidence);
  return scatter.width > narrowest.width ? scatter : narrowest;
}

}  // namespace strata::stats
