// SPDX-License-Identifier: Apache-2.0
// The operations that this level knows, each in the file of its family. A family adds its own to the table.
#pragma once

#include <map>
#include <string_view>

#include "builder.hpp"

namespace strata::onednn {

using Make = void (*)(Builder&);
using Operations = std::map<std::string_view, Make>;  // by ATen's name without overload

const Operations& operations();
// What an operation is of tensors that are not float32; nullptr: what it is of these.
Make typed_operation(std::string_view name);

void add_activations(Operations& table);
void add_arithmetic(Operations& table);
void add_calculations(Operations& table);  // on elements of any type
void add_attention(Operations& table);
void add_convolutions(Operations& table);
void add_einsum(Operations& table);
void add_moves(Operations& table);
void add_places(Operations& table);  // in order, and to computed places
void add_normalisations(Operations& table);
void add_poolings(Operations& table);
void add_products(Operations& table);
void add_recurrences(Operations& table);
void add_reductions(Operations& table);
void add_shapes(Operations& table);
void add_activations_backward(Operations& table);
void add_convolutions_backward(Operations& table);
void add_dropouts(Operations& table);
void add_images(Operations& table);  // to other sizes, apart and together
void add_losses(Operations& table);
void add_normalisations_training(Operations& table);
void add_poolings_training(Operations& table);

// With dilation as oneDNN counts it: 0 is none.
inline primitives::Window counted_from_0(primitives::Window window) {
  for (auto& extent : window.dilation) --extent;
  return window;
}

// A matrix product of tensors of equal rank, batched over all but the last two dimensions (which may be broadcast),
// into a temporary of the library's layout, or into output 0 where `into_result`.
Tensor multiply(Builder& builder, const Tensor& a, const Tensor& b, bool into_result);
// Of a normalisation with this of its own; `fixed_statistics`: it is given them.
dnnl::normalization_flags normalisation_flags(bool scale, bool shift, bool fixed_statistics);
// Of a layer norm: a matrix, row-major, whose second dimension is what is normalised.
Tensor rows_of(Builder& builder, std::string_view argument);
// An element-wise call into a temporary; eltwise_linear is alpha x + beta.
Tensor applied(Builder& builder, dnnl::algorithm how, const Tensor& x, float alpha = 0, float beta = 0);

}  // namespace strata::onednn
