// SPDX-License-Identifier: Apache-2.0
// Gradients of what works element by element, of softmax, losses, dropout, slices and lookups, under ATen's names.
// Those of convolution, normalisation and pooling are beside their forward operations.
#include <algorithm>

#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// grad_output is like what the operation gave, which has the shape of `self` or is `output`.
std::vector<Described> elementwise(const Call& call) {
  const auto& gradient = call.in("grad_output");
  const auto& other = call.node().find("output") != nullptr ? call.in("output") : call.self();
  need(gradient.shape == other.shape && gradient.type == other.type, "the gradient is {} {}, the tensor {} {}",
       name_of(gradient.type), to_string(gradient.shape), name_of(other.type), to_string(other.shape));
  return {{gradient.type, gradient.shape}};
}

std::vector<Described> softmax(const Call& call) {
  axis_of(call.node().integer("dim"), call.in("grad_output").shape.size());
  return elementwise(call);
}

std::vector<Described> dropout(const Call& call) {
  const auto &gradient = call.in("grad_output"), &mask = call.in("mask");
  need(mask.type == Type::boolean && mask.shape == gradient.shape, "the gradient is {}, the mask {} {}",
       to_string(gradient.shape), name_of(mask.type), to_string(mask.shape));
  return {{gradient.type, gradient.shape}};
}

// scores [N, C], target [N]: the gradient of the scores
std::vector<Described> nll_loss(const Call& call) {
  const auto &self = call.self(), &target = call.in("target");
  need(self.shape.size() == 2 && target.shape == Shape{self.shape[0]} && !is_floating(target.type),
       "scores {}, target {} {}", to_string(self.shape), name_of(target.type), to_string(target.shape));
  return same_as_self(call);
}

// Zeros of the shape `input_sizes` with the gradient in the place of the part.
std::vector<Described> part(const Call& call) {
  const auto& gradient = call.in("grad_output");
  const auto whole = call.node().ints("input_sizes");
  need(!whole.empty() && elements(whole) >= gradient.elements(), "a part {} of {}", to_string(gradient.shape),
       to_string(whole));
  axis_of(call.node().integer("dim"), whole.size());
  return {{gradient.type, whole}};
}

// Sums of the rows of grad_output [..., width] by the rows of a table that `indices` [...] names.
std::vector<Described> embedding(const Call& call) {
  const auto &gradient = call.in("grad_output"), &indices = call.in("indices");
  const auto height = call.node().integer("num_weights");
  Shape expected = indices.shape;
  need(!gradient.shape.empty() && height >= 0 && !is_floating(indices.type), "the gradient is {}, the indices {}",
       to_string(gradient.shape), name_of(indices.type));
  expected.push_back(gradient.shape.back());
  need(gradient.shape == expected, "the gradient is {}, the indices {}", to_string(gradient.shape),
       to_string(indices.shape));
  return {{gradient.type, {height, gradient.shape.back()}}};
}

}  // namespace

std::span<const Operation> backward_operations() {
  static constexpr Operation all[] = {{"_log_softmax_backward_data", softmax},
                                      {"_softmax_backward_data", softmax},
                                      {"embedding_dense_backward", embedding},
                                      {"gelu_backward", elementwise},
                                      {"hardsigmoid_backward", elementwise},
                                      {"hardswish_backward", elementwise},
                                      {"hardtanh_backward", elementwise},
                                      {"leaky_relu_backward", elementwise},
                                      {"native_dropout_backward", dropout},
                                      {"nll_loss_backward", nll_loss},
                                      {"select_backward", part},
                                      {"sigmoid_backward", elementwise},
                                      {"silu_backward", elementwise},
                                      {"slice_backward", part},
                                      {"tanh_backward", elementwise},
                                      {"threshold_backward", elementwise}};
  return all;
}

}  // namespace strata::graph
