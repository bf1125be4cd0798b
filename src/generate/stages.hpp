// SPDX-License-Identifier: Apache-2.0
// A program's steps by stages of the user's model, each one a function in C++.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "generate/emitter.hpp"

namespace strata::generate {

// A stage is a top-level module (a part of one with many steps: features.0, ...), with the steps of the run in it.
struct Stage {
  std::string name;        // an identifier, unique
  std::string module;      // "layer1"; empty: the network's own forward
  std::vector<int> steps;  // indices into Program::steps, in order, without views; all of one phase
};
compiler::Phase phase_of(const compiler::Program& program, const Stage& stage);
std::vector<Stage> stages_of(const compiler::Program& program);

// The function of each stage, without its head and end: a statement for each step, with a comment on it, and the steps
// of loading before the first that needs them. `by_node`: as Options::steps_by_node. Error: an operation that cannot be
// written, with its place.
Result<std::vector<std::vector<std::string>>> statements_of(const compiler::Program& program, const ValueNames& names,
                                                            const std::vector<Stage>& stages, bool by_node = false);

// Steps whose operation cannot be written at all, for a message that names them all; empty: none.
std::vector<int> unknown_steps(const compiler::Program& program);

}  // namespace strata::generate
