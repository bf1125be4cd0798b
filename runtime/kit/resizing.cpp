// SPDX-License-Identifier: Apache-2.0
// Images brought to another size (resize.hpp), as calls of a program. In any layout: a pixel's channels lie together,
// all of them, a block of them, or one.
#include "kit/internals.hpp"
#include "kit/operations.hpp"

namespace kit {

namespace {

// The images of a tensor, in whatever layout, as [outer, height, width, inner].
struct Pixels {
  Extent outer = 1, inner = 1;
  explicit Pixels(const Tensor& tensor) {
    outer = tensor.shape[0];
    if (tensor.layout == Layout::plain) {
      outer *= tensor.shape[1];
    } else if (tensor.layout == Layout::channels_last) {
      inner = tensor.shape[1];
    } else {
      const auto desc = desc_of(tensor);
      inner = desc.get_inner_blks()[0];
      outer *= desc.get_padded_dims()[1] / inner;
    }
  }
};

// Taps of new pixels along rows and columns.
std::vector<resizing::Taps> taps(const ResizeImage& how, const Shape& from, const Shape& to, int axis) {
  return resizing::taps_along(how.how, from[axis], to[axis], axis == 2 ? how.row_scale : how.column_scale, how.corners);
}

template <class Resizer>
void add_resizing(Internals& in, const Resizer& call, const ResizeImage& how, const char* kernel) {
  in.add_own(
      [call, source = in.handle(how.source, desc_of(how.source)), result = in.handle(how.result, desc_of(how.result))] {
        call.run(static_cast<const float*>(source.get_data_handle()), static_cast<float*>(result.get_data_handle()));
      },
      false, kernel);
}

}  // namespace

void resize(Program& program, const ResizeImage& how) {
  const Shape &from = how.source.shape, &to = how.result.shape;
  const Pixels pixels(how.source);
  add_resizing(program.internals(),
               resizing::Resize{.outer = pixels.outer,
                                .height = from[2],
                                .width = from[3],
                                .inner = pixels.inner,
                                .taps = resizing::taps_of(how.how),
                                .rows = taps(how, from, to, 2),
                                .columns = taps(how, from, to, 3)},
               how, "kit:resize");
}

void resize_backward(Program& program, const ResizeImage& how) {
  const Shape &from = how.result.shape, &to = how.source.shape;
  const Pixels pixels(how.source);
  const int count = resizing::taps_of(how.how);
  add_resizing(program.internals(),
               resizing::ResizeBackward{.outer = pixels.outer,
                                        .height = to[2],
                                        .width = to[3],
                                        .inner = pixels.inner,
                                        .rows = resizing::shares_of(taps(how, from, to, 2), count, from[2]),
                                        .columns = resizing::shares_of(taps(how, from, to, 3), count, from[3])},
               how, "kit:resize_backward");
}

}  // namespace kit
