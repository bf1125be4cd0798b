// SPDX-License-Identifier: Apache-2.0
// The operations that this level knows, each in the file of its family. A family adds its own to the table.
#pragma once

#include <map>
#include <string_view>

#include "builder.hpp"

namespace strata::cudnn {

using Make = void (*)(Builder&);
using Operations = std::map<std::string_view, Make>;  // by ATen's name without overload

const Operations& operations();

void add_activations(Operations& table);
void add_arithmetic(Operations& table);
void add_attention(Operations& table);
void add_convolutions(Operations& table);
void add_dropouts(Operations& table);
void add_einsum(Operations& table);
void add_losses(Operations& table);
void add_moves(Operations& table);
void add_normalisations(Operations& table);
void add_poolings(Operations& table);
void add_products(Operations& table);
void add_reductions(Operations& table);
void add_shapes(Operations& table);

// A matrix product of tensors of equal rank, batched over all but the last two dimensions (which may be broadcast),
// row-major.
Tensor multiply(Builder& builder, const Tensor& a, const Tensor& b);
// alpha x + beta into a temporary.
Tensor along_line(Builder& builder, const Tensor& x, double alpha, double beta);
// x + y into a temporary, or into output 0; y may be broadcast.
Tensor sum_of(Builder& builder, const Tensor& x, const Tensor& y, bool into_result = false);

}  // namespace strata::cudnn
