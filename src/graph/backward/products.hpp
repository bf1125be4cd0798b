// SPDX-License-Identifier: Apache-2.0
// Products of matrices in the last two axes, as rules need them: axes before these are broadcast.
#pragma once

#include "graph/backward/tape.hpp"

namespace strata::graph {

int product(Tape& tape, int a, int b);
int transposed(Tape& tape, int value);

}  // namespace strata::graph
