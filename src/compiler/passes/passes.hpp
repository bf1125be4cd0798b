// SPDX-License-Identifier: Apache-2.0
// The passes, one file each. All keep what the program computes; what each does is said in pass.cpp's table. Errors
// name the step and its place in the model.
#pragma once

#include "common/result.hpp"
#include "compiler/program.hpp"

namespace strata::compiler {

Result<void> fold_constants(Program& program);
Result<void> fold_batch_norm(Program& program);
Result<void> fuse_activations(Program& program);
Result<void> fuse_residual_sums(Program& program);
Result<void> fuse_gradients(Program& program);
Result<void> remove_dead(Program& program);
Result<void> lower_precision(Program& program);
Result<void> propagate_layouts(Program& program);
Result<void> choose_kernels(Program& program);
Result<void> recompute(Program& program);
Result<void> in_place(Program& program);
Result<void> plan_memory(Program& program);

}  // namespace strata::compiler
