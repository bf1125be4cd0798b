// SPDX-License-Identifier: Apache-2.0
// Images taken apart and put together (columns.hpp), as calls of a program.
#include "kit/columns.hpp"

#include "kit/internals.hpp"
#include "kit/operations.hpp"

namespace kit {
namespace {

// `image`: [..., rows, columns]
WindowsOfImages windows_of(const Columns& how, const Shape& image) {
  WindowsOfImages all;
  for (int d = 0; d < 2; ++d) {
    all.size[d] = image[image.rank - 2 + d];
    all.kernel[d] = how.kernel[d];
    all.dilation[d] = how.dilation[d];
    all.padding[d] = how.padding[d];
    all.stride[d] = how.stride[d];
  }
  all.images = image.elements() / std::max<Extent>(all.size[0] * all.size[1], 1);
  return all;
}

}  // namespace

void take_apart(Program& program, const Columns& how) {
  Internals& in = program.internals();
  in.add_own(
      [windows = windows_of(how, how.source.shape), source = raw_handle(in, how.source),
       result = raw_handle(in, how.result)] {
        windows.take_apart(static_cast<const float*>(source.get_data_handle()),
                           static_cast<float*>(result.get_data_handle()));
      },
      true, "kit:columns");
}

void put_together(Program& program, const Columns& how) {
  Internals& in = program.internals();
  in.add_own(
      [windows = windows_of(how, how.result.shape), source = raw_handle(in, how.source),
       result = raw_handle(in, how.result)] {
        windows.put_together(static_cast<const float*>(source.get_data_handle()),
                             static_cast<float*>(result.get_data_handle()));
      },
      false, "kit:columns");
}

}  // namespace kit
