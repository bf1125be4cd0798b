// SPDX-License-Identifier: Apache-2.0
// Whether a program can run and mean what it says: a check that knows nothing of how passes and planner work.
#pragma once

#include "common/result.hpp"
#include "compiler/program.hpp"

namespace strata::compiler {

// Every value is written before it is read and not written over before its last reader; inputs and weights are written
// by nobody; what shares a storage may; layouts and sizes fit; outputs are plain, the caller's and hold their values at
// the end. With `planned`: no two storages that live at the same time overlap in the arena, offsets are aligned and
// inside. Error: the first breach, with the step and the values.
Result<void> verify(const Program& program, bool planned = true);

// Whether the step may write its result over `operand`, provided that nobody reads that later: it then reads every
// element of it before it writes the same place, with its operation or as first post (a sum).
bool may_write_over(const Program& program, const Step& step, int operand);

}  // namespace strata::compiler
