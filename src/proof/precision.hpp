// SPDX-License-Identifier: Apache-2.0
// What a case's precision does to a level's outputs: whether the level computes in that mode at all, and how far its
// answers are from float64's. The judgement of equal work is in outputs.hpp.
#pragma once

#include <cstdint>

#include "proof/reference.hpp"

namespace strata::proof {

// A level in a reduced mode whose error is less than this share of the least that eager makes in it did not compute in
// it.
inline constexpr double least_share = 1.0 / 64;
// The mode shows only in outputs where eager's own error in it is at least so many times that in float32.
inline constexpr double least_contrast = 256;

struct PrecisionShare {
  double of_eager = 0;  // the level's mean error over eager's least, the largest over the outputs that show the mode
  double contrast = 0;  // eager's least error in the mode over its envelope in float32, the largest; under
                        // least_contrast: nothing shows
};

// `actual` as check_outputs takes it, and accepted by it.
PrecisionShare precision_share(const Reference& strict, const Reference& in_mode, std::string_view set,
                               const SafeTensors& actual, std::span<const int> indices);

// How far outputs are from float64's, over all `indices`.
struct Accuracy {
  double error = 0;          // relative (2-norm), the largest of the floating outputs, each averaged over the inputs
  std::int64_t answers = 0;  // rows of classes in the first output; 0: it has none
  std::int64_t differ = 0;   // of them with another winner than float64's
};
Accuracy accuracy_of(const Reference& reference, std::string_view set, const SafeTensors& actual,
                     std::span<const int> indices);

}  // namespace strata::proof
