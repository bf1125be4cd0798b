// SPDX-License-Identifier: Apache-2.0
#include "operations.hpp"

namespace strata::onednn {

const Operations& operations() {
  static const Operations table = [] {
    Operations all;
    for (const auto add : {add_activations,
                           add_arithmetic,
                           add_attention,
                           add_calculations,
                           add_convolutions,
                           add_einsum,
                           add_images,
                           add_moves,
                           add_places,
                           add_normalisations,
                           add_poolings,
                           add_products,
                           add_recurrences,
                           add_reductions,
                           add_shapes,
                           add_activations_backward,
                           add_convolutions_backward,
                           add_dropouts,
                           add_losses,
                           add_normalisations_training,
                           add_poolings_training})
      add(all);
    return all;
  }();
  return table;
}

}  // namespace strata::onednn
