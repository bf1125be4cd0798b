// SPDX-License-Identifier: Apache-2.0
// How large a layer's values are in one step of a training.
#pragma once

#include <optional>
#include <string>

namespace strata::core {

// Root mean squares over the elements of a layer's output, of the gradient of its weights, and of these; nullopt: not
// finite, or not there.
struct LayerSize {
  std::string layer;
  std::optional<double> activation, gradient, weight;
};

}  // namespace strata::core
