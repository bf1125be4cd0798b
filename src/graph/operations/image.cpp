// SPDX-License-Identifier: Apache-2.0
// Images brought to another size, taken apart into windows and put together again, and the gradients of these.
#include <algorithm>
#include <cmath>

#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// [N, C, ...]: a size, or a factor, for each axis behind the channels.
std::vector<Described> resize(const Call& call) {
  const auto& self = call.self();
  const auto& node = call.node();
  need(self.shape.size() >= 3, "the image is {}, expected [N, C, ...]", to_string(self.shape));
  const auto spatial = self.shape.size() - 2;
  Shape shape = self.shape;
  if (!node.is_null("output_size")) {
    const auto size = node.ints("output_size");
    need(size.size() == spatial, "the image is {}, the size {}", to_string(self.shape), to_string(size));
    std::copy(size.begin(), size.end(), shape.begin() + 2);
    return {{self.type, shape}};
  }
  const auto* factors = node.find("scale_factors");
  need(factors != nullptr && factors->plain.is_array() && factors->plain.size() == spatial,
       "neither a size nor a factor for each of {} axes", spatial);
  for (std::size_t d = 0; d < spatial; ++d)
    shape[d + 2] =
        static_cast<std::int64_t>(std::floor(static_cast<double>(shape[d + 2]) * factors->plain[d].get<double>()));
  return {{self.type, shape}};
}

std::vector<Described> resize_backward(const Call& call) {
  const auto& gradient = call.in("grad_output");
  const auto from = call.node().ints("input_size"), to = call.node().ints("output_size");
  need(from.size() == gradient.shape.size() && to.size() + 2 == from.size() &&
           std::equal(to.begin(), to.end(), gradient.shape.begin() + 2),
       "the gradient is {}, the images {} and {}", to_string(gradient.shape), to_string(from), to_string(to));
  return {{gradient.type, from}};
}

struct Windows {
  Shape kernel, dilation, padding, stride;
  explicit Windows(const Node& node)
      : kernel(node.ints("kernel_size")),
        dilation(node.ints("dilation")),
        padding(node.ints("padding")),
        stride(node.ints("stride")) {
    for (auto* all : {&kernel, &dilation, &padding, &stride}) {
      if (all->size() == 1) all->push_back(all->front());
      need(all->size() == 2, "a window of {} numbers, wanted are 2", all->size());
    }
  }
  std::int64_t places() const { return kernel[0] * kernel[1]; }
  // How many there are on an image of this size.
  std::int64_t on(const Shape& size) const {
    std::int64_t all = 1;
    for (std::size_t d = 0; d < 2; ++d) {
      const auto room = size[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
      need(stride[d] > 0 && kernel[d] > 0 && room >= 0, "windows {} on an image of {}", to_string(kernel),
           to_string(size));
      all = times(all, room / stride[d] + 1);
    }
    return all;
  }
};

// [N, C, H, W] -> [N, C places, windows], with or without N
std::vector<Described> take_apart(const Call& call) {
  const auto& self = call.self();
  const auto rank = self.shape.size();
  need(rank == 3 || rank == 4, "the image is {}", to_string(self.shape));
  const Windows windows(call.node());
  Shape shape(self.shape.begin(), self.shape.end() - 2);
  shape.back() = times(shape.back(), windows.places());
  shape.push_back(windows.on({self.shape[rank - 2], self.shape[rank - 1]}));
  return {{self.type, shape}};
}

// The reverse, where what comes to lie on one pixel is added.
std::vector<Described> put_together(const Call& call) {
  const auto& self = call.self();
  const auto size = call.node().ints("output_size");
  const Windows windows(call.node());
  need((self.shape.size() == 2 || self.shape.size() == 3) && size.size() == 2 &&
           self.shape.back() == windows.on(size) && self.shape[self.shape.size() - 2] % windows.places() == 0,
       "{} columns for an image of {}", to_string(self.shape), to_string(size));
  Shape shape(self.shape.begin(), self.shape.end() - 1);
  shape.back() /= windows.places();
  shape.insert(shape.end(), size.begin(), size.end());
  return {{self.type, shape}};
}

}  // namespace

std::span<const Operation> image_operations() {
  static constexpr Operation all[] = {{"_upsample_nearest_exact1d", resize},
                                      {"_upsample_nearest_exact2d", resize},
                                      {"_upsample_nearest_exact2d_backward", resize_backward},
                                      {"_upsample_nearest_exact3d", resize},
                                      {"col2im", put_together},
                                      {"im2col", take_apart},
                                      {"upsample_bicubic2d", resize},
                                      {"upsample_bicubic2d_backward", resize_backward},
                                      {"upsample_bilinear2d", resize},
                                      {"upsample_bilinear2d_backward", resize_backward},
                                      {"upsample_linear1d", resize},
                                      {"upsample_nearest1d", resize},
                                      {"upsample_nearest2d", resize},
                                      {"upsample_nearest2d_backward", resize_backward},
                                      {"upsample_nearest3d", resize},
                                      {"upsample_trilinear3d", resize}};
  return all;
}

}  // namespace strata::graph
