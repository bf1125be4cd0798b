// SPDX-License-Identifier: Apache-2.0
// From a captured graph to the first program: every node a step, every value plain, no pass applied but dead code gone.
#pragma once

#include "common/result.hpp"
#include "compiler/program.hpp"

namespace strata::compiler {

// `block`: channels in a block of Layout::blocked, 8 or 16. What only renames bytes (reshapes; dropout, casts to the
// same type and the like in inference) is a view. The program can run: it has a plan. Errors: another block; an
// argument that the graph lacks; more bytes than 64 bits can count.
Result<Program> lower(graph::Graph graph, std::int64_t block = 16);

// An einsum of two tensors becomes permutations, views and a product of matrices, which passes know and which move
// little: a permutation that changes nothing is left out. What graph::matrix_einsum does not know, or broadcasts, stays
// as it is. Throws graph::ArgumentError.
void expand_einsums(Program& program);

}  // namespace strata::compiler
