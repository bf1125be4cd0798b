// SPDX-License-Identifier: Apache-2.0
// The end of a run that came to none (it was killed, its disk was full, its store was held): the verdict on each row
// that the run left without one, from what is stored of it.
#pragma once

#include "store/record.hpp"

namespace strata::analysis {

// A row with blocks whose sampled outputs were right, and whose proof before the turns holds, is `measured`; one with a
// wrong block is `unequal`; others stay `failed`. What is proven at the end of a run is told as not checked.
void judge_stored(store::Run& run);

}  // namespace strata::analysis
