// SPDX-License-Identifier: Apache-2.0
// Images brought to another size, taken apart into windows and put together again, and the gradients of these: oneDNN
// has no call for them, or none with PyTorch's rules.
#include "kit/columns.hpp"
#include "kit/resize.hpp"
#include "operations.hpp"
#include "typed.hpp"

namespace strata::onednn {
namespace {

// Of images of two axes; the scale is the caller's where one was given, else as the extents say.
struct Sizes {
  Dims from, to;
  double scales[2] = {};
  bool corners = false;

  Sizes(Builder& b, const Dims& old_shape, const Dims& new_shape) : from(old_shape), to(new_shape) {
    if (from.size() != 4) throw Unsupported("images of other than two axes");
    if (b.has("scale_factors"))
      for (std::size_t i = 0; i < 2; ++i) scales[i] = 1 / b.node().find("scale_factors")->plain.at(i).get<double>();
    if (b.has("scales_h")) scales[0] = 1 / b.number("scales_h");
    if (b.has("scales_w")) scales[1] = 1 / b.number("scales_w");
    corners = b.has("align_corners") && b.flag("align_corners");
  }
  std::vector<kit::resizing::Taps> taps(kit::Resizing how, std::size_t axis) const {
    return kit::resizing::taps_along(how, from[axis], to[axis], scales[axis - 2], corners);
  }
};

template <class Work>
void of_floats(Builder& b, const Typed& source, const Typed& result, const Work& work) {
  b.own("pixels",
        [work, source, result] { work(static_cast<const float*>(source.data()), static_cast<float*>(result.to())); });
}

template <kit::Resizing how>
void resize(Builder& b) {
  const Typed source = typed(b, self_of(b)), result = typed_result(b);
  const Sizes sizes(b, source.shape, result.shape);
  const kit::resizing::Resize call{.outer = source.shape[0] * source.shape[1],
                                   .height = source.shape[2],
                                   .width = source.shape[3],
                                   .inner = 1,
                                   .taps = kit::resizing::taps_of(how),
                                   .rows = sizes.taps(how, 2),
                                   .columns = sizes.taps(how, 3)};
  of_floats(b, source, result, [call](const float* from, float* to) { call.run(from, to); });
}

template <kit::Resizing how>
void resize_backward(Builder& b) {
  const Typed gradient = typed(b, b.node().tensor("grad_output")), result = typed_result(b);
  const Sizes sizes(b, result.shape, gradient.shape);
  const auto shares = [&](std::size_t axis) {
    return kit::resizing::shares_of(sizes.taps(how, axis), kit::resizing::taps_of(how), result.shape[axis]);
  };
  const kit::resizing::ResizeBackward call{.outer = result.shape[0] * result.shape[1],
                                           .height = gradient.shape[2],
                                           .width = gradient.shape[3],
                                           .inner = 1,
                                           .rows = shares(2),
                                           .columns = shares(3)};
  of_floats(b, gradient, result, [call](const float* from, float* to) { call.run(from, to); });
}

// `image`: [..., rows, columns]
kit::WindowsOfImages windows_of(Builder& b, const Dims& image) {
  kit::WindowsOfImages all;
  const Dims kernel = b.integers("kernel_size", 2), dilation = b.integers("dilation", 2),
             padding = b.integers("padding", 2), stride = b.integers("stride", 2);
  for (std::size_t d = 0; d < 2; ++d) {
    all.size[d] = image[image.size() - 2 + d];
    all.kernel[d] = kernel[d];
    all.dilation[d] = dilation[d];
    all.padding[d] = padding[d];
    all.stride[d] = stride[d];
  }
  all.images = product(image) / std::max<std::int64_t>(all.size[0] * all.size[1], 1);
  return all;
}

void take_apart(Builder& b) {
  const Typed source = typed(b, self_of(b)), result = typed_result(b);
  of_floats(b, source, result,
            [windows = windows_of(b, source.shape)](const float* from, float* to) { windows.take_apart(from, to); });
}
void put_together(Builder& b) {
  const Typed source = typed(b, self_of(b)), result = typed_result(b);
  of_floats(b, source, result,
            [windows = windows_of(b, result.shape)](const float* from, float* to) { windows.put_together(from, to); });
}

}  // namespace

void add_images(Operations& table) {
  using kit::Resizing;
  table["upsample_nearest2d"] = resize<Resizing::nearest>;
  table["_upsample_nearest_exact2d"] = resize<Resizing::nearest_exact>;
  table["upsample_bilinear2d"] = resize<Resizing::linear>;
  table["upsample_bicubic2d"] = resize<Resizing::cubic>;
  table["upsample_nearest2d_backward"] = resize_backward<Resizing::nearest>;
  table["_upsample_nearest_exact2d_backward"] = resize_backward<Resizing::nearest_exact>;
  table["upsample_bilinear2d_backward"] = resize_backward<Resizing::linear>;
  table["upsample_bicubic2d_backward"] = resize_backward<Resizing::cubic>;
  table["im2col"] = take_apart;
  table["col2im"] = put_together;
}

}  // namespace strata::onednn
