// SPDX-License-Identifier: Apache-2.0
// Products of matrices.
#include <algorithm>
#include <map>
#include <string>

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

std::int64_t matmul_flops(const Call& call) {
  return product({2, call.out().elements(), call.self().shape.back()});
}

std::vector<Described> addmm(const Call& call) {
  const auto shape = multiplied(call.in("mat1").shape, call.in("mat2").shape);
  need(broadcast(call.self().shape, shape) == shape, "{} cannot be added to {}", to_string(call.self().shape),
       to_string(shape));
  return {{call.in("mat1").type, shape}};
}

std::int64_t addmm_flops(const Call& call) {
  return product({2, call.out().elements(), call.in("mat1").shape.back()});
}

struct Equation {
  std::vector<std::string> operands;  // one letter an axis
  std::string output;
  std::map<char, std::int64_t> extents;
};

Equation equation_of(const Call& call) {
  auto text = call.node().text("equation");
  std::erase(text, ' ');
  const auto arrow = text.find("->");
  need(arrow != std::string::npos && text.find('.') == std::string::npos,
       "the equation '{}' has no '->', or an ellipsis: that form is not known", text);
  Equation found;
  found.output = text.substr(arrow + 2);
  std::string left = text.substr(0, arrow) + ',';
  for (std::size_t begin = 0; begin < left.size();) {
    const auto end = left.find(',', begin);
    found.operands.push_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto tensors = call.all("tensors");
  need(tensors.size() == found.operands.size(), "the equation '{}' has {} operands, {} are given", text,
       found.operands.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    need(tensors[i] != nullptr && tensors[i]->shape.size() == found.operands[i].size(),
         "operand {} of '{}' has another rank", i, text);
    for (std::size_t axis = 0; axis < found.operands[i].size(); ++axis) {
      const auto extent = tensors[i]->shape[axis];
      auto& known = found.extents.emplace(found.operands[i][axis], extent).first->second;
      need(known == extent || known == 1 || extent == 1, "axis {} of '{}' is {} and {}", found.operands[i][axis], text,
           known, extent);
      known = std::max(known, extent);
    }
  }
  for (const char axis : found.output)
    need(found.extents.contains(axis), "axis {} of the output of '{}' is in no operand", axis, text);
  return found;
}

std::vector<Described> einsum(const Call& call) {
  const auto equation = equation_of(call);
  Shape shape;
  for (const char axis : equation.output) shape.push_back(equation.extents.at(axis));
  return {{call.all("tensors").front()->type, shape}};
}

// Operands are contracted from left to right, two at a time; an axis is summed as soon as nothing later needs it.
std::int64_t einsum_flops(const Call& call) {
  const auto equation = equation_of(call);
  auto held = equation.operands.front();
  std::int64_t total = 0;
  for (std::size_t i = 1; i < equation.operands.size(); ++i) {
    std::string joined = held;
    for (const char axis : equation.operands[i])
      if (joined.find(axis) == std::string::npos) joined += axis;
    std::int64_t work = 2;
    for (const char axis : joined) work = product({work, equation.extents.at(axis)});
    total = total > std::numeric_limits<std::int64_t>::max() - work ? std::numeric_limits<std::int64_t>::max()
                                                                    : total + work;
    std::string later = equation.output;
    for (std::size_t k = i + 1; k < equation.operands.size(); ++k) later += equation.operands[k];
    held.clear();
    for (const char axis : joined)
      if (later.find(axis) != std::string::npos) held += axis;
  }
  return total;
}

}  // namespace

std::span<const Operation> linear_operations() {
  static constexpr Operation all[] = {{"addmm", addmm, addmm_flops},    {"bmm", matmul, matmul_flops},
                                      {"einsum", einsum, einsum_flops}, {"linear", linear, linear_flops},
                                      {"matmul", matmul, matmul_flops}, {"mm", matmul, matmul_flops}};
  return all;
}

}  // namespace strata::graph
