// SPDX-License-Identifier: Apache-2.0
// What became of a training that began with a scheme of initialisation: does it learn, or does its signal vanish or
// explode, and where first.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/layer_sizes.hpp"
#include "analysis/learning.hpp"

namespace strata::analysis {

enum class Fate { learns, vanishes, explodes, stays };  // stays: it does not learn, and no layer says why
std::string_view to_string(Fate fate);                  // "stays at chance"

struct SignalFate {
  Fate fate = Fate::stays;
  std::optional<double> accuracy;  // of the last epoch, a share of the test images, mean over repeats
  int learned = 0, repeats = 0;    // of them, how many learned

  // What was seen first in the first repeat that did not learn, else in the first one; empty: nothing.
  std::string layer, words;
  std::optional<std::int64_t> step;  // of the training, from 1; nullopt: `words` says when
};

// Share of the test images above which a network is not guessing: that of the commonest class, and three standard
// errors of a count of so many images. `commonest`: a share. Both are those of the test images that were used.
double above_chance(double commonest, double test_images);

// `sizes`: the layers' by repeat and step, empty where nobody looked. A repeat learns if after its last epoch it is
// above chance and its loss was finite throughout; all repeats must for `learns`. nullopt: no repeat has an epoch.
std::optional<SignalFate> signal_fate(const Learning& learning, const SizesByStep& sizes, const core::Recipe& recipe,
                                      double above);

}  // namespace strata::analysis
