// SPDX-License-Identifier: Apache-2.0
// Images brought to another size (resize.hpp), as calls of a program. In any layout: a pixel's channels lie together,
// all of them, a block of them, or one.
#include "kit/internals.hpp"
#include "kit/operations.hpp"

namespace kit {

void resize(Program& program, const ResizeImage& how) {
  Internals& in = program.internals();
  const Shape &from = how.source.shape, &to = how.result.shape;
  const auto desc = desc_of(how.source);
  resizing::Resize call{.outer = from[0],
                        .height = from[2],
                        .width = from[3],
                        .inner = 1,
                        .taps = resizing::taps_of(how.how),
                        .rows = resizing::taps_along(how.how, from[2], to[2], how.row_scale, how.corners),
                        .columns = resizing::taps_along(how.how, from[3], to[3], how.column_scale, how.corners)};
  if (how.source.layout == Layout::plain) {
    call.outer *= from[1];
  } else if (how.source.layout == Layout::channels_last) {
    call.inner = from[1];
  } else {
    call.inner = desc.get_inner_blks()[0];
    call.outer *= desc.get_padded_dims()[1] / call.inner;
  }
  in.add_own(
      [call, source = in.handle(how.source, desc), result = in.handle(how.result, desc_of(how.result))] {
        call.run(static_cast<const float*>(source.get_data_handle()), static_cast<float*>(result.get_data_handle()));
      },
      false, "kit:resize");
}

}  // namespace kit
