// SPDX-License-Identifier: Apache-2.0
// --scale: how much of a training is done, where the whole of it would take too long.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/result.hpp"

namespace strata::plan {

// Shares, each above 0 and at most 1. `factor`: of the whole, spread by scaled().
struct Scale {
  std::optional<double> factor;
  double epochs = 1, repeats = 1, images = 1;
};

// "epochs=0.1,repeats=0.3,images=0.01", or one factor: "0.01". Error: another form, with what is allowed.
Result<Scale> parse_scale(const std::string& text);

// What is left of epochs and repeats, and which share of the images.
struct ScaledTraining {
  int epochs = 1, repeats = 1;
  double images = 1;
};

// Epochs and repeats are rounded, and never less than 1. A factor takes repeats first, down to 1, then images, down to
// a hundredth, then epochs.
ScaledTraining scaled(const Scale& scale, int epochs, int repeats);

// Images of a split of `all` of which a share is used: whole batches are not asked for, but one is.
std::int64_t scaled_images(double share, std::int64_t all, std::int64_t batch);

}  // namespace strata::plan
