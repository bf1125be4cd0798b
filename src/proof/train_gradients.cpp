// SPDX-License-Identifier: Apache-2.0
// The gradient probe (train_checks.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "common/parallel.hpp"
#include "proof/difference.hpp"
#include "proof/train_checks.hpp"

namespace strata::proof {

namespace {

constexpr double floor_share =
    0.01;  // of the root mean square of all gradients: tensors whose true gradient is zero are rounding only

double error_of(const TensorView* actual, const TensorView* expected, double floor) {
  if (!actual || !expected || actual->elements() != expected->elements() || !is_floating(actual->dtype))
    return infinity;
  const Difference d = difference(*actual, *expected, floor);
  return d.non_finite > 0 ? infinity : d.error;
}

// Largest |w' - (w - v)| in units of 4 units in the last place of |w| + |v|.
double step_ratio(const TensorView* before, const TensorView* moved_by, const TensorView* after) {
  if (!before || !moved_by || !after || before->elements() != moved_by->elements() ||
      before->elements() != after->elements())
    return infinity;
  const auto w = to_doubles(*before), v = to_doubles(*moved_by), now = to_doubles(*after);
  double worst = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double allowed = 4 * 0x1p-23 * (std::abs(w[i]) + std::abs(v[i])) + 1e-37;
    const double off = std::abs(now[i] - (w[i] - v[i]));
    if (!std::isfinite(off)) return infinity;
    worst = std::max(worst, off / allowed);
  }
  return worst;
}

std::string list_of(const std::vector<Deviation>& failing) {
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(failing.size(), 3); ++i)
    out +=
        fmt::format("{}{}{}", i ? ", " : "", failing[i].what,
                    std::isfinite(failing[i].ratio) ? fmt::format(" ({:.3g} times eager's envelope)", failing[i].ratio)
                                                    : " (missing, or not finite)");
  return out + (failing.size() > 3 ? fmt::format(" and {} more", failing.size() - 3) : "");
}

// The loss if it differs (the fault lies in the forward pass), else the failing gradient that is nearest to the loss:
// backward errors spread from there.
std::string first_of(const TrainReference& reference, const std::vector<Deviation>& failing) {
  const auto has = [&](const std::string& what) {
    return std::any_of(failing.begin(), failing.end(), [&](const Deviation& d) { return d.what == what; });
  };
  if (has("loss")) return "loss";
  const auto& order = reference.parameters();
  for (std::size_t i = order.size(); i-- > 0;)
    if (has("grad:" + order[i])) return "grad:" + order[i];
  return failing.front().what;
}

}  // namespace

core::Optimiser probe_optimiser() {
  return {.lr = 1, .weight_decay = 0, .rule = core::Sgd{.momentum = 0.9}};
}

core::Optimiser still_optimiser() {
  return {.lr = 0, .weight_decay = 0, .rule = core::Sgd{.momentum = 0}};
}

OutputVerdict check_gradients(const TrainReference& reference, std::string_view set, const SafeTensors& loss,
                              const SafeTensors& after, Tolerance tolerance) {
  if (!reference.has_set(set))
    return not_equal(fmt::format("the bundle has no training reference for {} weights", set), "no reference");
  const double floor = floor_share * reference.grad_floor(set);
  std::vector<Deviation> all;
  std::vector<std::function<double()>> ratios;  // of each of them
  const auto judge = [&](const std::string& what, const TensorView* actual, double floor_scale) {
    const double envelope = reference.envelope(set, what);
    const double allowed = envelope + std::min(tolerance.own_spread, strict_limit * envelope);
    const auto* expected = reference.expected(set, what);
    all.push_back({what, 0});
    ratios.emplace_back([=] { return error_of(actual, expected, floor_scale) / allowed; });
  };
  judge("loss", loss.find("0/loss"), 0);
  for (const auto& parameter : reference.parameters())
    judge("grad:" + parameter, after.find("momentum:" + parameter), floor);
  for (const auto& buffer : reference.statistics(set)) judge("stat:" + buffer, after.find("weight:" + buffer), 0);
  for (const auto& parameter : reference.parameters()) {
    const TensorView* v = after.find("momentum:" + parameter);
    if (!v) continue;
    const auto *before = reference.weight(set, parameter), *moved = after.find("weight:" + parameter);
    all.push_back({"step:" + parameter, 0});
    ratios.emplace_back([=] { return strict_limit * step_ratio(before, v, moved); });
  }
  in_parallel(all.size(), [&](std::size_t i) { all[i].ratio = ratios[i](); });
  OutputVerdict out;
  std::vector<Deviation> failing;
  const double limit = tolerance.reassociates ? reassociated_limit : strict_limit;
  for (const auto& element : all) {
    const bool step = element.what.starts_with("step:");
    if (!step) out.worst_ratio = std::max(out.worst_ratio, element.ratio);
    if (!(element.ratio <= (step ? strict_limit : limit))) failing.push_back(element);
  }
  if (failing.empty()) {
    if (out.worst_ratio > strict_limit) out.kind = OutputVerdict::Kind::equal_looser;
    return out;
  }
  std::stable_sort(failing.begin(), failing.end(), [](const auto& a, const auto& b) { return a.ratio > b.ratio; });
  const auto cause = step_cause(reference, set, loss, after, failing);
  auto verdict = not_equal(
      fmt::format("{} of {} values of a training step on {} weights differ: {}{}", failing.size(), all.size(), set,
                  list_of(failing), cause.sentence.empty() ? "" : "; " + cause.sentence),
      cause.brief.empty() ? first_of(reference, failing) + " differs" : cause.brief, first_of(reference, failing));
  verdict.worst_ratio = out.worst_ratio;
  return verdict;
}

PrecisionShare gradient_precision(const TrainReference& strict, const TrainReference& in_mode, std::string_view set,
                                  const SafeTensors& after) {
  std::vector<double> shares, contrasts;
  for (const auto& parameter : in_mode.parameters()) {
    const double eager = in_mode.least_error(set, parameter);
    const double error = error_of(after.find("momentum:" + parameter), in_mode.expected(set, "grad:" + parameter),
                                  floor_share * in_mode.grad_floor(set));
    if (eager <= 0 || !std::isfinite(error)) continue;
    contrasts.push_back(eager / strict.envelope(set, "grad:" + parameter));
    if (contrasts.back() >= least_contrast) shares.push_back(error / eager);
  }
  const auto median = [](std::vector<double>& values) {
    if (values.empty()) return 0.0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  PrecisionShare out;
  // one gradient that shows the mode is enough
  out.contrast = contrasts.empty() ? 0 : *std::max_element(contrasts.begin(), contrasts.end());
  out.of_eager = median(shares);
  return out;
}

OutputVerdict check_losses(const TrainReference& reference, const SafeTensors& losses, Tolerance tolerance) {
  constexpr double limit = 10 * strict_limit;
  OutputVerdict out;
  const double envelope = reference.envelope("probe1", "loss") + tolerance.own_spread;
  for (int i = 0; i < reference.ring(); ++i) {
    const TensorView *expected = reference.loss(i), *got = losses.find(fmt::format("{}/loss", i));
    const double ratio = error_of(got, expected, 0) / envelope;
    out.worst_ratio = std::max(out.worst_ratio, ratio);
    if (ratio <= limit) continue;
    auto verdict = not_equal(
        fmt::format("the loss of input {} is {} where {:.7g} is due: inputs or labels of the ring are not those given",
                    i, got && got->elements() == 1 ? fmt::format("{:.7g}", value_at(*got, 0)) : "missing",
                    value_at(*expected, 0)),
        "loss follows other data", "loss");
    verdict.worst_ratio = ratio;
    return verdict;
  }
  return out;
}

double gradient_spread(const TrainReference& reference, std::string_view set, const std::vector<SafeTensors>& states) {
  double spread = 0;
  for (std::size_t i = 1; i < states.size(); ++i)
    for (const auto& parameter : reference.parameters()) {
      const double error = error_of(states[i].find("momentum:" + parameter), states[0].find("momentum:" + parameter),
                                    floor_share * reference.grad_floor(set));
      if (std::isfinite(error)) spread = std::max(spread, error);
    }
  return spread;
}

}  // namespace strata::proof
