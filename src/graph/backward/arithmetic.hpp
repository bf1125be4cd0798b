// SPDX-License-Identifier: Apache-2.0
// Products and quotients element by element, as rules need them.
#pragma once

#include "graph/backward/tape.hpp"

namespace strata::graph {

int times(Tape& tape, int value, int other);
int times_number(Tape& tape, int value, const nlohmann::json& number);
int quotient(Tape& tape, int value, int other);

}  // namespace strata::graph
