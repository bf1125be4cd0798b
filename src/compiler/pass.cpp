// SPDX-License-Identifier: Apache-2.0
#include "compiler/pass.hpp"

#include "compiler/passes/passes.hpp"

namespace strata::compiler {

std::span<const Pass> passes() {
  static constexpr Pass all[] = {
      {"fold_constants", "What depends on weights alone is computed when they are loaded.", fold_constants},
      {"fold_batch_norm", "A batch norm goes into the weights of the layer before it, or becomes a scale and a shift.",
       fold_batch_norm},
      {"fuse_activations", "An activation is applied by the step that computes its operand.", fuse_activations},
      {"fuse_residual_sums", "A sum is taken by the layer that computes one of its operands.", fuse_residual_sums},
      {"fuse_gradients",
       "The gradient of a batch norm takes along a sum of gradients and the mask of an activation, an update takes "
       "along the product that is its gradient.",
       fuse_gradients},
      {"remove_dead", "Steps whose results nobody needs are taken out.", remove_dead},
      {"lower_precision", "What the library computes in bfloat16 reads and writes that, where the program asks for it.",
       lower_precision},
      {"propagate_layouts", "Every value gets the layout with which the fewest bytes are reordered.",
       propagate_layouts},
      {"choose_kernels", "Convolutions that a kernel of strata's own computes faster than the library are given to it.",
       choose_kernels},
      {"recompute",
       "Steps of the forward phase are repeated, where keeping their results would exceed the memory budget.",
       recompute},
      {"in_place", "Results are written over operands that nobody reads later.", in_place},
      {"plan_memory", "Every storage gets its place in one arena.", plan_memory},
  };
  return all;
}

}  // namespace strata::compiler
