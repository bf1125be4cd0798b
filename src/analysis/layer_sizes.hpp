// SPDX-License-Identifier: Apache-2.0
// Activations, gradients and weights by layer over the steps of a training: where a network's signal dies out or grows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/case.hpp"
#include "core/layer_size.hpp"
#include "store/record.hpp"

namespace strata::analysis {

using core::LayerSize;

// As series over steps (docs/store.md): activation_rms:LAYER, gradient_rms:LAYER, weight_rms:LAYER.
std::vector<store::Series> to_series(const std::vector<LayerSize>& sizes, std::int64_t step, int repeat);

// One level's, by repeat and step. `order`: the layers as they run; those that it lacks come last.
using SizesByStep = std::map<int, std::map<std::int64_t, std::vector<LayerSize>>>;
SizesByStep layer_sizes(const std::vector<store::Series>& series, const std::vector<std::string>& order);

struct SignalFault {
  std::string layer, words;
  bool explodes = false;  // else it vanishes
};

// The first layer whose signal dies out or grows too large in this step (counted from 0); nullopt: none.
// An activation vanishes below 2^-24 of what enters a network (about 1) and explodes above 2^24. A step of SGD vanishes
// where the learning rate times the gradient is below 2^-25 of the weights, so that float32 rounds it away, and
// explodes where it is larger than the weights. What is not finite has exploded.
std::optional<SignalFault> signal_fault(const std::vector<LayerSize>& sizes, const core::Recipe& recipe,
                                        std::int64_t step);

}  // namespace strata::analysis
