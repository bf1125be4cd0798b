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

}  // namespace strata::compiler
