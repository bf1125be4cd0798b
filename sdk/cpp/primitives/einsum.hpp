// SPDX-License-Identifier: Apache-2.0
// A sum of products of two tensors by their labels ("bhid, bhjd -> bhij") as permuted views and one matrix product.
#pragma once

#include <string>

#include "primitives/arguments.hpp"

namespace strata::primitives {

struct Einsum {
  std::vector<std::size_t> left, right;  // orders in which the operands' dimensions are read
  Dims of_left, of_right;                // as matrices [..., rows, inner] and [..., inner, columns]
  Dims of_product;                       // with all dimensions of the product again
  std::vector<std::size_t> result;       // and their order in the result
};

// Throws Unsupported for what is no such product.
Einsum einsum_of(const std::string& equation, const Dims& left, const Dims& right);

}  // namespace strata::primitives
