// SPDX-License-Identifier: Apache-2.0
// The steps that passes make, and how they make them. Operations, with their arguments as a node's:
//   strata.copy(self)                      the same elements in a storage of its own
//   strata.cast(self)                      the same elements, rounded to the type of the result; in any layout
//   strata.reorder(self)                   the same elements in the layout of the result's place
//   strata.scale_weight(weight, gamma, var, eps), strata.shift_bias(bias, mean, gamma, var, beta, eps), both at load
//   strata.scale_shift(self, scale, shift) self * scale[c] + shift[c], c along dimension 1
// The formulas are with fold_batch_norm in passes/.
#pragma once

#include "compiler/program.hpp"

namespace strata::compiler {

// A new value with the type and shape of `like`; its index. References into graph.values end here.
int add_value(Program& program, const std::string& name, const graph::Value& like);

graph::Argument tensor_argument(const std::string& name, int value);  // -1: null
graph::Argument plain_argument(const std::string& name, nlohmann::json plain);

// A step of the run without nodes of the graph yet, with a name that no other step has.
Step make_step(const Program& program, const std::string& op, std::vector<graph::Argument> args,
               std::vector<int> outputs);

// The step serves the place in the model where `like` stands.
void set_place(Step& step, const Step& like);

// `into` gives the result of `from` in place of its first, and has its nodes too; `from` is left without outputs,
// for the pass to erase.
void absorb(Step& into, Step& from);

// Makes every reader of `from` (steps, posts, outputs, updates) read `to`.
void replace_uses(Program& program, int from, int to);

}  // namespace strata::compiler
