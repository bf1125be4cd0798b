// SPDX-License-Identifier: Apache-2.0
// The set that is part of the program: 1,797 handwritten digits of 8x8, values 0 to 16, as scikit-learn has them.
// digits/README.md says whose they are.
#pragma once

#include "data/dataset.hpp"

namespace strata::data {

Dataset digits();

}  // namespace strata::data
