// SPDX-License-Identifier: Apache-2.0
// Products of matrices.
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// input [..., in], weight [out, in], bias [out] -> [..., out]
std::vector<Described> linear(const Call& call) {
  const auto& input = call.in("input");
  const auto& weight = call.in("weight");
  need(weight.shape.size() == 2 && !input.shape.empty() && input.shape.back() == weight.shape[1],
       "the input is {}, the weight {}", to_string(input.shape), to_string(weight.shape));
  need(weight.type == input.type, "the input is {}, the weight {}", name_of(input.type), name_of(weight.type));
  if (const auto* bias = call.maybe_in("bias"))
    need(bias->shape == Shape{weight.shape[0]}, "the bias is {} for {} outputs", to_string(bias->shape),
         weight.shape[0]);
  Shape shape = input.shape;
  shape.back() = weight.shape[0];
  return {{input.type, shape}};
}

std::int64_t linear_flops(const Call& call) {
  return product({2, call.out().elements(), call.in("weight").shape.at(1)});
}

// ATen's matmul of shapes: the last two axes are matrices, a vector is a row on the left and a column on the right.
Shape multiplied(Shape a, Shape b) {
  need(!a.empty() && !b.empty(), "a scalar cannot be multiplied as a matrix");
  const auto texts = std::pair(to_string(a), to_string(b));
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  need(a.back() == b[b.size() - 2], "{} and {} cannot be multiplied", texts.first, texts.second);
  Shape shape = broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!row) shape.push_back(a[a.size() - 2]);
  if (!column) shape.push_back(b.back());
  return shape;
}

std::vector<Described> matmul(const Call& call) {
  const auto& a = call.self();
  const auto& b = call.in(call.node().find("mat2") != nullptr ? "mat2" : "other");
  need(a.type == b.type, "the factors are {} and {}", name_of(a.type), name_of(b.type));
  return {{a.type, multiplied(a.shape, b.shape)}};
}

std::vector<Described> addmm(const Call& call) {
  const auto shape = multiplied(call.in("mat1").shape, call.in("mat2").shape);
  need(broadcast(call.self().shape, shape) == shape, "{} cannot be added to {}", to_string(call.self().shape),
       to_string(shape));
  return {{call.in("mat1").type, shape}};
}

}  // namespace

std::int64_t matmul_flops(const Call& call) {
  need(!call.self().shape.empty(), "a scalar cannot be multiplied as a matrix");
  return product({2, call.out().elements(), call.self().shape.back()});
}

std::int64_t addmm_flops(const Call& call) {
  need(!call.in("mat1").shape.empty(), "a scalar cannot be multiplied as a matrix");
  return product({2, call.out().elements(), call.in("mat1").shape.back()});
}

std::span<const Operation> linear_operations() {
  static constexpr Operation all[] = {{"addmm", addmm, addmm_flops},
                                      {"bmm", matmul, matmul_flops},
                                      {"linear", linear, linear_flops},
                                      {"matmul", matmul, matmul_flops},
                                      {"mm", matmul, matmul_flops}};
  return all;
}

}  // namespace strata::graph
