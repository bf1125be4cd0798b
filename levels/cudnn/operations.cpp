// SPDX-License-Identifier: Apache-2.0
#include "operations.hpp"

namespace strata::cudnn {

const Operations& operations() {
  static const Operations table = [] {
    Operations all;
    for (const auto add :
         {add_activations, add_arithmetic, add_attention, add_convolutions, add_dropouts, add_einsum, add_losses,
          add_moves, add_normalisations, add_poolings, add_products, add_reductions, add_shapes})
      add(all);
    return all;
  }();
  return table;
}

}  // namespace strata::cudnn
