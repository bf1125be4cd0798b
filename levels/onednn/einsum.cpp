// SPDX-License-Identifier: Apache-2.0
// Sums of products of two tensors by their labels.
#include "primitives/einsum.hpp"

#include "operations.hpp"

namespace strata::onednn {
namespace {

void einsum(Builder& b) {
  const auto tensors = b.tensors("tensors");
  if (tensors.size() != 2) throw Unsupported("einsum of other than two tensors");
  const auto how = primitives::einsum_of(b.text("equation"), tensors[0].dims(), tensors[1].dims());
  const Tensor x = b.reshaped(permuted(tensors[0], how.left), how.of_left),
               y = b.reshaped(permuted(tensors[1], how.right), how.of_right);
  b.is(permuted(b.reshaped(multiply(b, x, y, false), how.of_product), how.result));
}

}  // namespace

void add_einsum(Operations& table) {
  table["einsum"] = einsum;
}

}  // namespace strata::onednn
