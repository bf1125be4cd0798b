// SPDX-License-Identifier: Apache-2.0
// Post-ops of an operation: as what a library's call can take along, and as what a kernel of the kit's own does.
#pragma once

#include <optional>

#include "kit_cuda/internals.hpp"
#include "kit_cuda/kernels/elementwise.hpp"

namespace kit {

// A sum, then a clamp.
struct Fused {
  device::Epilogue then;
  Tensor summand;
};
// nullopt: the posts are something else. A sum must lie as the result does, and be of its shape.
std::optional<Fused> fused_of(const PostOps& posts, const Tensor& result);

// The posts from `first` on, as many as a kernel takes; where their tensors lie, once all memory is there.
device::Then then_of(const Internals& in, const PostOps& posts, std::size_t first = 0);
// Calls for the posts from `first` on, and before them for a bias by dimension 1, which may be left out.
void add_post_ops(Internals& in, const Tensor& result, const Tensor& bias, const PostOps& posts, std::size_t first = 0);

}  // namespace kit
