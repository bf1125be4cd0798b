// SPDX-License-Identifier: Apache-2.0
// Who writes and who reads each value of a program, found afresh by every pass that wants to know.
#pragma once

#include <vector>

#include "common/result.hpp"
#include "compiler/program.hpp"

namespace strata::compiler {

// By value; steps are indices into Program::steps.
struct Uses {
  std::vector<int> producer;                // -1: an input, a weight, or nothing
  std::vector<std::vector<int>> consumers;  // ascending, each step once
  std::vector<bool> read_at_end;            // an output or an update of a buffer: read after the last step

  // The step is the only reader, so that it may swallow the value.
  bool only_reader(int value, int step) const;
};

Uses uses_of(const Program& program);

// Finds each value's In, bytes and storage anew, from steps, views and layouts: nothing is in place and nothing has an
// offset. Every pass that changes steps or layouts ends with it. Error: a value is too large for its layout.
Result<void> recompute_places(Program& program);

// Gives each output a storage of its own that only steps of the run write: what is an input, a weight or a second
// output is copied at the end ("strata.copy").
void materialize_outputs(Program& program);

}  // namespace strata::compiler
