// SPDX-License-Identifier: Apache-2.0
// An einsum of two tensors becomes permutations, views and a product of matrices, which passes know and which move
// little: a permutation that changes nothing is left out.
#pragma once

#include "compiler/program.hpp"

namespace strata::compiler {

// What graph::matrix_einsum does not know, or broadcasts, stays as it is. Throws graph::ArgumentError.
void expand_einsums(Program& program);

}  // namespace strata::compiler
