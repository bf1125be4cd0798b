// SPDX-License-Identifier: Apache-2.0
// Dropout judged by the losses and the gradients that it scatters (train_checks.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "proof/train_checks.hpp"
#include "stats/sample.hpp"

namespace strata::proof {

namespace {

constexpr double false_alarms = 1e-6;  // of check_variances

struct Moments {
  double mean = 0, variance = 0, repeats = 0;  // repeats: share of consecutive pairs that are equal
};

Moments moments_of(const std::vector<double>& values) {
  Moments out;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) out.mean += v / n;
  for (const double v : values) out.variance += (v - out.mean) * (v - out.mean) / (n - 1);
  for (std::size_t i = 1; i < values.size(); ++i) out.repeats += values[i] == values[i - 1] ? 1 / (n - 1) : 0;
  return out;
}

}  // namespace

std::optional<OutputVerdict> check_dropout(const std::vector<double>& eager, const std::vector<double>& level,
                                           double rounding) {
  OutputVerdict out;
  if (eager.size() < 2 || level.size() < 2)
    return not_equal("there are too few losses with dropout to compare", "too few losses with dropout");
  for (const double loss : level)
    if (!std::isfinite(loss))
      return not_equal("a loss with dropout is not finite", "loss with dropout is not finite", "dropout");
  const Moments expected = moments_of(eager), got = moments_of(level);
  if (std::sqrt(expected.variance) <= rounding) return std::nullopt;
  if (got.repeats > expected.repeats + 0.25)
    return not_equal(
        fmt::format("with dropout, {:.0f}% of consecutive losses are equal where eager's are in {:.0f}%: {}",
                    100 * got.repeats, 100 * expected.repeats,
                    got.variance == 0 ? "dropout is not applied" : "masks are drawn once and kept"),
        got.variance == 0 ? "dropout is not applied" : "dropout masks are reused", "dropout");
  const double factor = std::sqrt(got.variance / expected.variance);
  const double apart = std::max(0.0, std::abs(got.mean - expected.mean) - rounding);
  const double z = apart / std::sqrt(expected.variance / static_cast<double>(eager.size()) +
                                     got.variance / static_cast<double>(level.size()));
  if (!(factor < 2 && factor > 0.5))
    return not_equal(fmt::format("with dropout the losses scatter {:.3g} times as much as eager's (allowed: 0.5 to 2): "
                                 "another probability, or fewer layers that drop",
                                 factor),
                     "losses scatter otherwise under dropout", "dropout");
  if (!(z < 4))
    return not_equal(fmt::format("with dropout the mean loss is {:.5g} where eager's is {:.5g} (z = {:.1f}, allowed "
                                 "4): another probability, or kept values are not scaled",
                                 got.mean, expected.mean, z),
                     "mean loss under dropout differs", "dropout");
  out.worst_ratio = z / 4;
  return out;
}

std::optional<OutputVerdict> check_variances(const TrainReference::Variances& eager,
                                             const TrainReference::Variances& level) {
  if (eager.empty()) return std::nullopt;
  OutputVerdict out;
  for (const auto& [parameter, own] : eager) {
    const auto it = level.find(parameter);
    if (own.size() < 2 || it == level.end() || it->second.size() < 2)
      return not_equal("there are too few gradients with dropout to compare", "too few gradients with dropout");
    const Moments expected = moments_of(own), got = moments_of(it->second);
    if (!std::isfinite(got.mean) || !std::isfinite(got.variance))
      return not_equal(fmt::format("the gradient of {} with dropout is not finite", parameter),
                       "gradient with dropout is not finite", "dropout");
    if (!(expected.mean > 0)) continue;
    if (!(got.mean > 0))
      return not_equal(fmt::format("with dropout the gradients of {} do not differ from step to step: dropout is not "
                                   "applied, or masks are drawn once and kept",
                                   parameter),
                       "dropout masks are reused", "dropout");
    const auto part = [](const Moments& of, std::size_t n) {
      return of.variance / (of.mean * of.mean) / static_cast<double>(n);
    };
    const double a = part(expected, own.size()), b = part(got, it->second.size());
    const double df =
        (a + b) * (a + b) /
        (a * a / static_cast<double>(own.size() - 1) + b * b / static_cast<double>(it->second.size() - 1));
    const double t = std::log(got.mean / expected.mean) / std::sqrt(a + b);
    const double allowed =
        stats::student_t_quantile(1 - false_alarms / 2 / static_cast<double>(eager.size()), std::max(1.0, df));
    out.worst_ratio = std::max(out.worst_ratio, std::abs(t) / allowed);
    if (!(std::abs(t) <= allowed))
      return not_equal(
          fmt::format("with dropout the gradient of {} scatters {:.3g} times as much (in variance) as eager's ({:.1f} "
                      "standard errors, allowed {:.1f}): another probability, or kept values are not scaled",
                      parameter, got.mean / expected.mean, t, allowed),
          "dropout has another probability", "dropout");
  }
  return out;
}

}  // namespace strata::proof
