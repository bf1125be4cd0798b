// SPDX-License-Identifier: Apache-2.0
// In which layouts each operation can read and write. What is not named here is plain.
#pragma once

#include <vector>

#include "compiler/program.hpp"

namespace strata::compiler {

// All operands of four dimensions that a run computes are read in `in`, results of four dimensions written in `out`.
// Post-ops read in `out`. `bytes`: moved by the step itself, where options differ in it.
struct LayoutOption {
  Layout in = Layout::plain, out = Layout::plain;
  std::int64_t bytes = 0;
  bool view = false;
  const char* plain_argument = nullptr;  // the name of one that is read plain nevertheless
};

// At least one; the one that a library likes best first.
std::vector<LayoutOption> layout_options(const Program& program, const Step& step);

// What a step reads in the order in which the step that made it wrote its first result: a workspace, a mask; -1:
// nothing. The step must read its first operand in the layout of that result.
int bound_operand(const Step& step);

// Bytes that steps of the run read and write for nothing but another layout.
std::int64_t reorder_bytes(const Program& program);

}  // namespace strata::compiler
