// SPDX-License-Identifier: Apache-2.0
// One step of Adam or AdamW between two states, as check_update judges it, and its weights alone. Formulas and bounds:
// docs/proof_of_training.md.
#pragma once

#include "proof/train_checks.hpp"

namespace strata::proof {

// Step `done` + 1. With d = g + decay w (AdamW: d = g), m' = beta1 m + (1 - beta1) d and v' = beta2 v + (1 - beta2) d^2
// per tensor, by the gradient in `gradient`, within rounding and `spread`; and in every element, given m' and v' as
// read, so that no gradient and no sign of one hides anything, w' = w - lr (m' / (1 - beta1^t)) / (sqrt(v' / (1 -
// beta2^t)) + eps), AdamW's less lr decay w, to 4 units in the last place of |w| + |w' - w|.
UpdateVerdict check_adam_update(const std::vector<std::string>& parameters, const SafeTensors& before,
                                const SafeTensors& gradient, const SafeTensors& after, const core::Optimiser& optimiser,
                                double lr, double spread, std::int64_t done, double norm_error = 0);

// The weights alone: what a step did with the buffers that it left behind.
OutputVerdict check_adam_weights(const std::vector<std::string>& parameters, const SafeTensors& before,
                                 const SafeTensors& after, const core::Optimiser& optimiser, double lr,
                                 std::int64_t done);

}  // namespace strata::proof
