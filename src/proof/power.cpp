// SPDX-License-Identifier: Apache-2.0
// Could this reference show a fault at all? Spread across inputs against spread across classes, and planted faults.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/bundle_info.hpp"
#include "proof/difference.hpp"
#include "proof/reference.hpp"

namespace strata::proof {

namespace {

// One row per input seen (batch elements count as inputs), at most 4,096 features of it.
std::vector<std::vector<double>> samples_of(const Reference& reference, std::string_view set,
                                            const OutputSpec& output) {
  const std::int64_t batch = reference.question().batch;
  std::vector<std::vector<double>> out;
  for (int index : reference.indices(set)) {
    const TensorView& whole = *reference.expected(set, index, output.name);
    const bool batched = whole.shape.size() > 1 && whole.shape[0] == batch;
    for (std::int64_t row = 0; row < (batched ? batch : 1); ++row) {
      const TensorView sample = batched ? row_of(whole, row) : whole;
      const auto count = static_cast<std::size_t>(sample.elements());
      std::vector<double> features;
      for (std::size_t i = 0, step = count / 4096 + 1; i < count; i += step) features.push_back(value_at(sample, i));
      out.push_back(std::move(features));
    }
  }
  return out;
}

double standard_deviation(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (double value : values) squares += (value - mean) * (value - mean);
  return values.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// Standard deviation across inputs (root mean square over the features) over that across features of the mean input.
double spread_ratio(const std::vector<std::vector<double>>& samples) {
  if (samples.size() < 2 || samples.front().empty()) return 0;
  std::vector<double> means;
  double variances = 0;
  for (std::size_t f = 0; f < samples.front().size(); ++f) {
    std::vector<double> values;
    for (const auto& sample : samples) values.push_back(sample[f]);
    const double sd = standard_deviation(values);
    if (!std::isfinite(sd)) continue;
    variances += sd * sd;
    double sum = 0;
    for (double value : values) sum += value;
    means.push_back(sum / static_cast<double>(values.size()));
  }
  if (means.empty()) return 0;
  const double across_inputs = std::sqrt(variances / static_cast<double>(means.size()));
  const double across_classes = means.size() > 1 ? standard_deviation(means) : std::abs(means.front());
  if (across_inputs == 0) return 0;
  return across_classes > 0 ? across_inputs / across_classes : infinity;
}

double spread_of_set(const Reference& reference, std::string_view set) {
  double best = 0;
  for (const OutputSpec& output : reference.outputs())
    if (!output.tap) best = std::max(best, spread_ratio(samples_of(reference, set, output)));
  return best;
}

// Whether no output of a set holds a single finite number: then any level that answers NaN is right.
bool all_non_finite(const Reference& reference, std::string_view set) {
  for (const OutputSpec& output : reference.outputs())
    for (int index : reference.indices(set)) {
      const TensorView* values = output.tap ? nullptr : reference.expected(set, index, output.name);
      if (values && std::ranges::any_of(to_doubles(*values), [](double v) { return std::isfinite(v); })) return false;
    }
  return true;
}

double times_bound(const Reference& reference, const std::string& fault) {
  double times = 0;
  for (const OutputSpec& output : reference.outputs()) {
    const TensorView* expected = reference.expected("generic1", 0, output.name);
    const TensorView* faulty = output.tap ? nullptr : reference.faulty(fault, output.name);
    if (!expected || !faulty) continue;
    if (faulty->shape != expected->shape) return infinity;
    const Difference d = difference(*faulty, *expected, reference.floor_scale("generic1"));
    if (d.non_finite > 0 || (!is_floating(output.dtype) && d.error > 0)) return infinity;
    const Envelope envelope = reference.envelope("generic1", output.name);
    times = std::max({times, d.error / (strict_limit * envelope.error),
                      d.largest / (element_factor * strict_limit * envelope.largest)});
  }
  return times;
}

}  // namespace

Power power(const Reference& reference) {
  Power out;
  const bool light = core::is_light(reference.bundle());
  const bool generic = reference.has_set("generic1") && (light || reference.has_set("generic2"));
  if (!generic) {
    out.weak = true;
    out.reason = "there are no generic weights to prove with";
    return out;
  }
  out.input_spread = spread_of_set(reference, "generic1");
  if (!light) out.input_spread = std::min(out.input_spread, spread_of_set(reference, "generic2"));
  for (const std::string& fault : reference.faults()) out.faults.push_back({fault, times_bound(reference, fault)});
  const auto* least = least_fault(out.faults);
  if (all_non_finite(reference, "timed")) {
    out.reason =
        "every output of the timed weights is NaN or Inf, so that what a level answers while timed shows nothing";
  } else if (out.faults.empty() && !light) {
    out.reason = "no fault could be planted in this network";
  } else if (least != nullptr && least->times_bound < power_limit) {
    out.reason =
        fmt::format("the planted fault '{}' reaches only {:.2g} of the bound", least->name, least->times_bound);
  } else if (out.input_spread < spread_limit) {
    out.reason = fmt::format(
        "outputs vary across inputs by only {:.1f}% of their variation across classes, where {:.0f}% are needed",
        100 * out.input_spread, 100 * spread_limit);
  }
  out.weak = !out.reason.empty();
  return out;
}

}  // namespace strata::proof
