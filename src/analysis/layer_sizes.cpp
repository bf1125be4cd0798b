// SPDX-License-Identifier: Apache-2.0
#include "analysis/layer_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace strata::analysis {
namespace {

struct Kind {
  std::string_view prefix;
  std::optional<double> LayerSize::*value;
};
constexpr Kind kKinds[] = {{"activation_rms:", &LayerSize::activation},
                           {"gradient_rms:", &LayerSize::gradient},
                           {"weight_rms:", &LayerSize::weight}};

}  // namespace

std::vector<store::Series> to_series(const std::vector<LayerSize>& sizes, std::int64_t step, int repeat) {
  std::vector<store::Series> all;
  for (const auto& [prefix, value] : kKinds)
    for (const auto& size : sizes)
      all.push_back({.name = std::string(prefix) + size.layer,
                     .unit = "1",
                     .axis = "step",
                     .positions = {step},
                     .values = {(size.*value).value_or(std::numeric_limits<double>::quiet_NaN())},
                     .repeat = repeat});
  return all;
}

SizesByStep layer_sizes(const std::vector<store::Series>& series, const std::vector<std::string>& order) {
  std::map<int, std::map<std::int64_t, std::map<std::string, LayerSize>>> by_repeat;
  for (const auto& curve : series)
    for (const auto& [prefix, value] : kKinds) {
      if (curve.axis != "step" || !curve.name.starts_with(prefix)) continue;
      const auto layer = curve.name.substr(prefix.size());
      for (std::size_t i = 0; i < curve.positions.size(); ++i) {
        auto& size = by_repeat[curve.repeat][curve.positions[i]][layer];
        size.layer = layer;
        if (std::isfinite(curve.values[i])) size.*value = curve.values[i];
      }
    }
  const auto place = [&](const LayerSize& size) { return std::find(order.begin(), order.end(), size.layer); };
  SizesByStep sizes;
  for (auto& [repeat, steps] : by_repeat)
    for (auto& [step, layers] : steps) {
      auto& list = sizes[repeat][step];
      for (auto& [name, size] : layers) list.push_back(std::move(size));
      std::stable_sort(list.begin(), list.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
    }
  return sizes;
}

std::optional<SignalFault> signal_fault(const std::vector<LayerSize>& sizes, const core::Recipe& recipe,
                                        std::int64_t step) {
  const double rate = core::learning_rate(recipe.optimiser, step);
  const auto* adam = recipe.optimiser.adam();  // whose first step is the rate, whatever the gradient, down to eps
  for (const auto& size : sizes) {
    if (!size.activation) continue;  // of a layer that is not called as one
    if (*size.activation < 0x1p-24)
      return SignalFault{
          size.layer, fmt::format("activations vanish at {} (root mean square {:.2g})", size.layer, *size.activation),
          false};
    if (*size.activation > 0x1p24)
      return SignalFault{
          size.layer, fmt::format("activations explode at {} (root mean square {:.2g})", size.layer, *size.activation),
          true};
  }
  // Backwards: a gradient comes from the last layer.
  for (auto it = sizes.rbegin(); it != sizes.rend(); ++it) {
    if (!it->weight || *it->weight == 0) continue;
    if (!it->gradient)
      return SignalFault{it->layer, fmt::format("gradients explode at {} (not finite)", it->layer), true};
    const double moved = adam != nullptr ? *it->gradient / (*it->gradient + adam->eps) : *it->gradient;
    const double share = rate * moved / *it->weight;
    if (share < 0x1p-25)
      return SignalFault{
          it->layer,
          fmt::format("gradients vanish at {} (a step is {:.2g} of its weights, which float32 rounds away)", it->layer,
                      share),
          false};
    if (share > 1)
      return SignalFault{it->layer,
                         fmt::format("gradients explode at {} (a step is {:.3g} times its weights)", it->layer, share),
                         true};
  }
  return std::nullopt;
}

}  // namespace strata::analysis
