// SPDX-License-Identifier: Apache-2.0
// Pooling over windows, and to a wanted size.
#include <algorithm>

#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// The number of windows along an axis, as PyTorch counts: with ceil_mode a last window, which may be the only one, may
// reach over the end, but not begin there.
std::int64_t windows(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                     std::int64_t dilation, bool ceil) {
  need(kernel > 0 && stride > 0 && dilation > 0, "kernel {}, stride {} and dilation {} must be positive", kernel,
       stride, dilation);
  need(padding >= 0 && padding <= kernel / 2, "padding {} is more than half the kernel {}", padding, kernel);
  const auto room = extent + 2 * padding - times(dilation, kernel - 1) - 1 + (ceil ? stride - 1 : 0);
  need(room >= 0, "a window of {} does not fit into {}", kernel, extent);
  auto count = room / stride + 1;
  if (ceil && (count - 1) * stride >= extent + padding) --count;
  return count;
}

std::vector<Described> pool(const Call& call) {
  const auto& self = call.self();
  const auto& node = call.node();
  const auto kernel = node.ints("kernel_size"), stride = node.ints("stride"), padding = node.ints("padding");
  const auto spatial = kernel.size();
  const auto dilation =
      node.find("dilation") == nullptr ? std::vector<std::int64_t>(spatial, 1) : node.ints("dilation");
  need(stride.size() == spatial && padding.size() == spatial && dilation.size() == spatial,
       "kernel_size, stride, padding and dilation have different lengths");
  need(self.shape.size() == spatial + 2 || self.shape.size() == spatial + 1, "the input is {}, the window has {} axes",
       to_string(self.shape), spatial);
  Shape shape = self.shape;
  for (std::size_t i = 0; i < spatial; ++i) {
    auto& extent = shape[shape.size() - spatial + i];
    extent = windows(extent, kernel[i], stride[i], padding[i], dilation[i], node.flag("ceil_mode"));
  }
  return {{self.type, shape}};
}

// The maxima, and where each one lies in its image.
std::vector<Described> pool_with_indices(const Call& call) {
  auto outputs = pool(call);
  outputs.push_back({Type::int64, outputs.front().shape});
  return outputs;
}

// The gradient must be of the shape that the pooling gives.
std::vector<Described> pool_backward(const Call& call) {
  const auto expected = pool(call).front().shape;
  need(call.in("grad_output").shape == expected, "the gradient is {}, the pooling gives {}",
       to_string(call.in("grad_output").shape), to_string(expected));
  return same_as_self(call);
}

std::vector<Described> adaptive_pool_backward(const Call& call) {
  const auto &self = call.self().shape, &gradient = call.in("grad_output").shape;
  need(self.size() == gradient.size() && self.size() >= 3 && std::equal(self.begin(), self.end() - 2, gradient.begin()),
       "the gradient is {}, the input {}", to_string(gradient), to_string(self));
  return same_as_self(call);
}

std::vector<Described> adaptive_pool(const Call& call) {
  const auto& self = call.self();
  const auto expected = call.node().ints("output_size");
  need(self.shape.size() == expected.size() + 2 || self.shape.size() == expected.size() + 1,
       "the input is {}, the output {}", to_string(self.shape), to_string(expected));
  Shape shape = self.shape;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    need(expected[i] >= 0, "an output of {}", expected[i]);
    shape[shape.size() - expected.size() + i] = expected[i];
  }
  return {{self.type, shape}};
}

}  // namespace

std::span<const Operation> pooling_operations() {
  static constexpr Operation all[] = {{"_adaptive_avg_pool2d_backward", adaptive_pool_backward},
                                      {"adaptive_avg_pool1d", adaptive_pool},
                                      {"adaptive_avg_pool2d", adaptive_pool},
                                      {"adaptive_avg_pool3d", adaptive_pool},
                                      {"avg_pool1d", pool},
                                      {"avg_pool2d", pool},
                                      {"avg_pool2d_backward", pool_backward},
                                      {"avg_pool3d", pool},
                                      {"max_pool1d", pool},
                                      {"max_pool2d", pool},
                                      {"max_pool2d_with_indices", pool_with_indices},
                                      {"max_pool2d_with_indices_backward", pool_backward},
                                      {"max_pool3d", pool}};
  return all;
}

}  // namespace strata::graph
