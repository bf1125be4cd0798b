// SPDX-License-Identifier: Apache-2.0
// Elements in another order, or more than once, along an axis: slices, joined, or views.
#include <fmt/format.h>

#include <algorithm>

#include "graph/expand/expansion.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

constexpr std::int64_t most_parts = 128;  // that an axis is taken apart into

// Axes the other way round.
void flip(Expansion& e) {
  int value = e.node().tensor("self");
  const Shape shape = e.shape(value);
  const auto turned = axes_of(e.node().ints("dims"), shape.size());
  if (e.node().ints("dims").empty()) return e.end_as(value);
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (turned[d] && shape[d] > most_parts) return;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!turned[d] || shape[d] < 2) continue;
    std::vector<int> parts;
    for (auto i = shape[d] - 1; i >= 0; --i)
      parts.push_back(e.sliced(value, d, i, i + 1, fmt::format("axis{}_part{}", d, i)));
    value =
        e.call("cat.default", {tensors_argument("tensors", parts), plain_argument("dim", d)}, fmt::format("axis{}", d));
  }
  e.end_as(value);
}

// Windows of an axis, `step` apart, as an axis behind all.
void unfold(Expansion& e) {
  const auto& node = e.node();
  const int self = node.tensor("self");
  const Shape shape = e.shape(self), to = e.shape(e.result());
  const auto size = node.integer("size"), step = node.integer("step");
  if (shape.empty() || size < 1 || size > most_parts) return;
  const auto axis = e.axis("dimension", shape.size());
  std::vector<int> parts;
  for (std::int64_t i = 0; i < size; ++i)
    parts.push_back(e.call("slice.Tensor",
                           {tensor_argument("self", self), plain_argument("dim", axis), plain_argument("start", i),
                            plain_argument("end", i + (to[axis] - 1) * step + 1), plain_argument("step", step)},
                           fmt::format("part{}", i)));
  e.end("stack.default", {tensors_argument("tensors", parts), plain_argument("dim", -1)});
}

// Each element of an axis as often as said, one behind the other.
void repeat_interleave(Expansion& e) {
  const auto& node = e.node();
  if (node.is_tensor("repeats") || node.is_null("dim")) return;
  const int self = node.tensor("self");
  Shape shape = e.shape(self);
  if (shape.empty()) return;
  const auto axis = e.axis("dim", shape.size());
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, 1);
  const int apart = e.viewed(self, shape, "apart");
  shape[axis + 1] = node.integer("repeats");
  e.end_as(e.call("expand.default", {tensor_argument("self", apart), plain_argument("size", shape)}, "repeated"));
}

}  // namespace

std::span<const ExpansionRule> move_expansions() {
  static constexpr ExpansionRule all[] = {{"flip", flip}, {"repeat_interleave", repeat_interleave}, {"unfold", unfold}};
  return all;
}

}  // namespace strata::graph
