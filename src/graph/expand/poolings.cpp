// SPDX-License-Identifier: Apache-2.0
// Poolings and layers without a batch; those of lines and volumes by those of images, whose gradients are known; maxima
// to a wanted size.
#include <fmt/format.h>

#include <algorithm>

#include "graph/expand/expansion.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// The operation itself on a batch of one.
void as_batch(Expansion& e, const char* operand) {
  const auto& node = e.node();
  const int given = node.tensor(operand);
  Shape shape = e.shape(given);
  shape.insert(shape.begin(), 1);
  auto arguments = node.args;
  for (auto& argument : arguments)
    if (argument.name == operand) argument = tensor_argument(operand, e.viewed(given, shape, "batch"));
  e.end_as(e.call(node.op.substr(std::string_view("aten.").size()), std::move(arguments), "of_batch"));
}

template <std::size_t axes>
void layer(Expansion& e) {
  if (e.shape(e.node().tensor("input")).size() == axes + 1) as_batch(e, "input");
}

// Numbers of some axes of a window: a pooling's argument for an image of two axes, of which -1 has `otherwise`.
Argument numbers(const Node& node, const char* name, int first, int second, std::int64_t otherwise) {
  const auto all = node.find(name) == nullptr ? Shape() : node.ints(name);
  const auto of = [&](int axis) {
    return axis < 0 || all.empty() ? otherwise : all.size() == 1 ? all[0] : all.at(static_cast<std::size_t>(axis));
  };
  return plain_argument(name, Shape{of(first), of(second)});
}

// A pooling over axes `first` and `second` of the node's window, as one of an image; its divisor with the second.
int pooled(Expansion& e, const std::string& kind, int image, int first, int second, const std::string& name) {
  const auto& node = e.node();
  if (kind == "adaptive_avg_pool") {
    const Shape from = e.shape(image), to = node.ints("output_size");
    const auto extent = [&](int axis, std::size_t own) {
      return axis < 0 ? from[own] : to.at(static_cast<std::size_t>(axis));
    };
    return e.call(
        "adaptive_avg_pool2d.default",
        {tensor_argument("self", image), plain_argument("output_size", Shape{extent(first, 2), extent(second, 3)})},
        name);
  }
  Argument stride = numbers(node, node.ints("stride").empty() ? "kernel_size" : "stride", first, second, 1);
  stride.name = "stride";
  std::vector<Argument> arguments{tensor_argument("self", image), numbers(node, "kernel_size", first, second, 1),
                                  std::move(stride), numbers(node, "padding", first, second, 0)};
  if (kind == "max_pool") arguments.push_back(numbers(node, "dilation", first, second, 1));
  arguments.push_back(plain_argument("ceil_mode", node.flag("ceil_mode")));
  if (kind == "avg_pool") {
    const bool divides = second >= 0 && node.find("divisor_override") != nullptr;
    arguments.push_back(plain_argument("count_include_pad", node.flag("count_include_pad")));
    arguments.push_back(divides ? *node.find("divisor_override") : plain_argument("divisor_override", nullptr));
  }
  return e.call(kind + "2d.default", std::move(arguments), name);
}

// The libraries pool lines and volumes themselves, but in training: there of lines as images of one row, of volumes
// first over the depth, which is exact for maxima, and for means since a window divides by a product of extents.
void pool(Expansion& e, const std::string& kind, std::size_t axes) {
  const auto& node = e.node();
  const int given = node.tensor("self");
  const Shape from = e.shape(given);
  if (from.size() == axes + 1) return as_batch(e, "self");
  if (e.infers() || axes == 2 || node.outputs.size() != 1) return;
  if (axes == 1) {
    const int row = e.viewed(given, {from[0], from[1], 1, from[2]}, "row");
    return e.end_as(pooled(e, kind, row, -1, 0, "pooled"));
  }
  // a mean that is divided by a given number is no mean over the depth
  if (kind == "avg_pool" && !node.is_null("divisor_override")) return;
  const int columns = e.viewed(given, {from[0], from[1], from[2], from[3] * from[4]}, "columns");
  const int deep = pooled(e, kind, columns, 0, -1, "deep");
  const auto depth = e.shape(deep)[2];
  const int slices = e.viewed(deep, {from[0], from[1] * depth, from[3], from[4]}, "slices");
  e.end_as(pooled(e, kind, slices, 1, 2, "pooled"));
}

template <std::size_t axes>
void max_pool(Expansion& e) {
  pool(e, "max_pool", axes);
}
template <std::size_t axes>
void avg_pool(Expansion& e) {
  pool(e, "avg_pool", axes);
}
template <std::size_t axes>
void adaptive_avg_pool(Expansion& e) {
  pool(e, "adaptive_avg_pool", axes);
}

int maxima(Expansion& e, int image, std::int64_t height, std::int64_t width, const std::string& name) {
  const Shape window{height, width};
  return e.call("max_pool2d.default",
                {tensor_argument("self", image), plain_argument("kernel_size", window),
                 plain_argument("stride", window), plain_argument("padding", Shape{0, 0}),
                 plain_argument("dilation", Shape{1, 1}), plain_argument("ceil_mode", false)},
                name);
}

// To `to` along axis 2 or 3: windows of one size by one pooling, others one by one.
int maxima_along(Expansion& e, int image, std::size_t axis, std::int64_t to, const std::string& name) {
  const auto from = e.shape(image)[axis];
  if (from == to) return image;
  const auto pooled_by = [&](int value, std::int64_t extent, const std::string& part) {
    return maxima(e, value, axis == 2 ? extent : 1, axis == 3 ? extent : 1, part);
  };
  if (from % to == 0) return pooled_by(image, from / to, name);
  std::vector<int> parts;
  for (std::int64_t i = 0; i < to; ++i) {
    const auto begin = i * from / to, end = ((i + 1) * from + to - 1) / to;
    const int part = e.sliced(image, axis, begin, end, fmt::format("{}_part{}", name, i));
    parts.push_back(pooled_by(part, end - begin, fmt::format("{}_most{}", name, i)));
  }
  return e.call("cat.default", {tensors_argument("tensors", parts), plain_argument("dim", axis)}, name);
}

constexpr std::int64_t most_windows = 64;  // along an axis

template <std::size_t axes>
void adaptive_max_pool(Expansion& e) {
  const auto& node = e.node();
  const int given = node.tensor("self");
  Shape from = e.shape(given);
  const Shape to = node.ints("output_size");
  if (e.is_read(1) || to.size() != axes ||
      std::any_of(to.begin(), to.end(), [](auto extent) { return extent < 1 || extent > most_windows; }))
    return;
  if (from.size() == axes + 1) from.insert(from.begin(), 1);
  if (axes == 1) {
    const int row = e.viewed(given, {from[0], from[1], 1, from[2]}, "row");
    return e.end_as(maxima_along(e, row, 3, to[0], "along"));
  }
  int image = e.viewed(given, {from[0], from[1], from[2], elements(Shape(from.begin() + 3, from.end()))}, "image");
  if (axes == 3) {
    image = maxima_along(e, image, 2, to[0], "deep");
    image = e.viewed(image, {from[0], from[1] * to[0], from[3], from[4]}, "slices");
  }
  const auto height = to[axes - 2], width = to[axes - 1];
  const Shape shape = e.shape(image);
  if (shape[2] % height == 0 && shape[3] % width == 0)
    return e.end_as(maxima(e, image, shape[2] / height, shape[3] / width, "pooled"));
  e.end_as(maxima_along(e, maxima_along(e, image, 2, height, "rows"), 3, width, "columns"));
}

}  // namespace

std::span<const ExpansionRule> pooling_expansions() {
  static constexpr ExpansionRule all[] = {{"adaptive_avg_pool1d", adaptive_avg_pool<1>},
                                          {"adaptive_avg_pool2d", adaptive_avg_pool<2>},
                                          {"adaptive_avg_pool3d", adaptive_avg_pool<3>},
                                          {"adaptive_max_pool1d", adaptive_max_pool<1>},
                                          {"adaptive_max_pool2d", adaptive_max_pool<2>},
                                          {"adaptive_max_pool3d", adaptive_max_pool<3>},
                                          {"avg_pool1d", avg_pool<1>},
                                          {"avg_pool2d", avg_pool<2>},
                                          {"avg_pool3d", avg_pool<3>},
                                          {"conv1d", layer<1>},
                                          {"conv2d", layer<2>},
                                          {"conv3d", layer<3>},
                                          {"conv_transpose1d", layer<1>},
                                          {"conv_transpose2d", layer<2>},
                                          {"conv_transpose3d", layer<3>},
                                          {"max_pool1d", max_pool<1>},
                                          {"max_pool2d", max_pool<2>},
                                          {"max_pool3d", max_pool<3>}};
  return all;
}

}  // namespace strata::graph
