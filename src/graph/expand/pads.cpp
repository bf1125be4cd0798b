// SPDX-License-Identifier: Apache-2.0
// Padding with what the tensor itself holds, and by negative widths, which cut off: slices, joined.
#include <fmt/format.h>

#include <algorithm>

#include "graph/expand/expansion.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

constexpr std::int64_t most_slices = 128;  // of a mirrored edge each row is one

enum class Edge { mirrored, repeated, wrapped };

// What stands before and behind an axis.
struct Edges {
  std::vector<int> before, behind;
};

Edges edges_of(Expansion& e, Edge how, int value, std::size_t axis, std::int64_t before, std::int64_t behind) {
  const auto extent = e.shape(value)[axis];
  const auto slice = [&](std::int64_t begin, std::int64_t end, const char* where) {
    return e.sliced(value, axis, begin, end, fmt::format("axis{}_{}{}", axis, where, begin));
  };
  Edges edges;
  if (how == Edge::wrapped) {
    if (before > 0) edges.before.push_back(slice(extent - before, extent, "before"));
    if (behind > 0) edges.behind.push_back(slice(0, behind, "behind"));
  } else if (how == Edge::mirrored) {
    for (std::int64_t i = before; i > 0; --i) edges.before.push_back(slice(i, i + 1, "before"));
    for (std::int64_t i = 1; i <= behind; ++i) edges.behind.push_back(slice(extent - 1 - i, extent - i, "behind"));
  } else {
    if (before > 0) edges.before.assign(static_cast<std::size_t>(before), slice(0, 1, "before"));
    if (behind > 0) edges.behind.assign(static_cast<std::size_t>(behind), slice(extent - 1, extent, "behind"));
  }
  return edges;
}

// `widths`: two numbers an axis, the last axis first.
void pad_by(Expansion& e, Edge how, const Shape& widths) {
  int value = e.node().tensor("self");
  const auto rank = e.shape(value).size();
  if (widths.size() / 2 > rank ||
      std::any_of(widths.begin(), widths.end(), [](auto w) { return w < 0 || w > most_slices / 2; }))
    return;
  for (std::size_t i = 0; i < widths.size() / 2; ++i) {
    const auto axis = rank - 1 - i;
    if (widths[2 * i] == 0 && widths[2 * i + 1] == 0) continue;
    auto [parts, behind] = edges_of(e, how, value, axis, widths[2 * i], widths[2 * i + 1]);
    parts.push_back(value);
    parts.insert(parts.end(), behind.begin(), behind.end());
    value = e.call("cat.default", {tensors_argument("tensors", parts), plain_argument("dim", axis)},
                   fmt::format("axis{}", axis));
  }
  e.end_as(value);
}

// Widths below 0 cut off; what is left is padded by numbers.
void cut_off(Expansion& e, const Shape& widths) {
  const auto& node = e.node();
  if (std::none_of(widths.begin(), widths.end(), [](auto w) { return w < 0; })) return;
  int value = node.tensor("self");
  const auto rank = e.shape(value).size();
  Shape left = widths;
  for (std::size_t i = 0; i < widths.size() / 2; ++i) {
    const auto axis = rank - 1 - i;
    const auto begin = std::max<std::int64_t>(-widths[2 * i], 0), end = std::max<std::int64_t>(-widths[2 * i + 1], 0);
    left[2 * i] = std::max<std::int64_t>(widths[2 * i], 0);
    left[2 * i + 1] = std::max<std::int64_t>(widths[2 * i + 1], 0);
    // what is left of an axis may lie in the padding alone
    const auto extent = e.shape(value)[axis];
    if (begin + end > extent) return;
    if (begin > 0 || end > 0) value = e.sliced(value, axis, begin, extent - end, fmt::format("axis{}", axis));
  }
  auto arguments = node.args;
  for (auto& argument : arguments) {
    if (argument.name == "self") argument = tensor_argument("self", value);
    if (argument.name == "pad") argument = plain_argument("pad", left);
  }
  e.end_with(std::move(arguments));
}

void pad(Expansion& e) {
  const auto& node = e.node();
  const auto widths = node.ints("pad");
  const auto mode = node.find("mode") == nullptr ? "constant" : node.text("mode");
  if (mode == "constant") return cut_off(e, widths);
  if (mode == "reflect") return pad_by(e, Edge::mirrored, widths);
  if (mode == "replicate") return pad_by(e, Edge::repeated, widths);
  if (mode == "circular") return pad_by(e, Edge::wrapped, widths);
}
void reflection(Expansion& e) {
  pad_by(e, Edge::mirrored, e.node().ints("padding"));
}
void replication(Expansion& e) {
  pad_by(e, Edge::repeated, e.node().ints("padding"));
}
void circular(Expansion& e) {
  pad_by(e, Edge::wrapped, e.node().ints("pad"));
}

}  // namespace

std::span<const ExpansionRule> pad_expansions() {
  static constexpr ExpansionRule all[] = {
      {"_pad_circular", circular},        {"constant_pad_nd", pad},           {"pad", pad},
      {"reflection_pad1d", reflection},   {"reflection_pad2d", reflection},   {"reflection_pad3d", reflection},
      {"replication_pad1d", replication}, {"replication_pad2d", replication}, {"replication_pad3d", replication}};
  return all;
}

}  // namespace strata::graph
