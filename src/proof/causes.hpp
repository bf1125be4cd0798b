// SPDX-License-Identifier: Apache-2.0
// Guesses why an output differs, from what it resembles instead. Only names causes; the judgement is made in
// outputs.cpp.
#pragma once

#include "proof/outputs.hpp"

namespace strata::proof {

struct Cause {
  OutputVerdict::Kind kind = OutputVerdict::Kind::unequal;  // mistrusted: the output does not follow its input
  std::string sentence;                                     // empty: nothing is known
  std::string brief;                                        // at most 8 words; empty: nothing is known
};

// `actual` is the failing output of `index`, of the declared dtype and shape.
Cause likely_cause(const Reference& reference, std::string_view set, int index, const OutputSpec& output,
                   const TensorView& actual, const SafeTensors& all, std::span<const int> indices);

}  // namespace strata::proof
