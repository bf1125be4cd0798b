// SPDX-License-Identifier: Apache-2.0
// What passes need to know of operations: which compute each element by itself, which can take posts, what a view may
// be made of. Shapes and FLOPs are in graph/operations.hpp.
#pragma once

#include "compiler/program.hpp"

namespace strata::compiler {

// Each element of the result depends on the operands' element in the same place alone, or on what is broadcast there.
bool is_elementwise(const Step& step);

// The step's operation as a post on the result of what produces `input`; nullopt: it is none. Activations alone.
std::optional<PostOp> as_activation(const Step& step);

// The call that computes the step can apply posts to its first result before it stores it (convolutions, products of
// matrices, arithmetic, batch norms in training).
bool supports_post_ops(const Step& step);
// It can apply this one after those that it has.
bool supports_post_op(const Step& step, const PostOp& post);

// Convolutions and linear layers: where the result is accumulated, so that a sum may be their first post.
bool is_convolution(const Step& step);
bool is_linear(const Step& step);
// Means over windows of images, or their gradients; and whether a library's call describes the windows: all of one
// size, divided by the places inside the image, or by all of them if none lies beyond the padding.
bool is_average_pool(const Step& step);
bool windows_are_alike(const Program& program, const Step& pool);
// The gradient of a convolution's input: a convolution of the result's gradient with the weight's taps in reverse.
bool is_input_gradient(const Step& step);

// As graph/operations.hpp counts them; 0 for operations that passes made.
std::int64_t flops_of(const Program& program, const Step& step);

// A permutation that does nothing but call N H W C, which is how channels_last lies, a plain tensor, or the reverse.
bool only_renames_axes(const Step& step, Layout from, Layout to);

// The elements of a view lie, in the layout of its result, in the order of its operand's bytes.
bool view_keeps_order(const Program& program, const Step& step);

}  // namespace strata::compiler
