// SPDX-License-Identifier: Apache-2.0
// Where a tensor lies on the device, and how its bytes are to be read: memory, an offset into it, strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kit_cuda/kernels/device.hpp"
#include "kit_cuda/kernels/view.hpp"
#include "primitives/arguments.hpp"

namespace strata::cudnn {

using kit_cuda::Index, kit_cuda::View;
using primitives::Dims, primitives::product, primitives::Unsupported;

// int64 is row-major; bfloat16 is an operand or a result of one call.
enum class Type : std::uint8_t { float32, int64, bfloat16 };

// A copy is another view of the same bytes, which the library holds.
struct Tensor {
  std::byte* memory = nullptr;
  Index offset = 0;  // elements
  View view;
  Type type = Type::float32;
  bool constant = false;  // (a view of) a weight that no run changes

  float* data() const { return reinterpret_cast<float*>(memory) + offset; }
  std::int64_t* int64_data() const { return reinterpret_cast<std::int64_t*>(memory) + offset; }
  kit_cuda::Source source() const { return {data(), view}; }
  kit_cuda::Target target() const { return {data(), view}; }
  Dims dims() const { return {view.extents, view.extents + view.rank}; }
  std::byte* begin() const { return memory + offset * element_bytes(); }
  Index element_bytes() const { return type == Type::int64 ? 8 : type == Type::float32 ? 4 : 2; }
  std::size_t bytes() const { return static_cast<std::size_t>(view.count() * element_bytes()); }
};

// To the same elements in other places, or of another type; not of int64.
void copy(kit_cuda::Stream stream, const Tensor& from, const Tensor& to);

// Layouts of images, of weights of convolutions and of what operations compute of them: as PyTorch has them.
enum class Layouts { contiguous, channels_last };

// A scalar is {1}. `channels_last`: N H W C, where there are spatial dimensions.
View row_major(const Dims& dims);
View channels_last(const Dims& dims);
bool same_layout(const View& view, const View& other);
bool is_row_major(const View& view);
bool is_channels_last(const View& view);  // and not row-major
// Neither gaps nor elements that share bytes.
bool is_dense(const View& view);
// The dimensions from the outermost to the innermost: "abcd" is row-major.
std::string layout_name(const View& view);

// The same elements in row-major order as another shape, if strides can say so.
std::optional<View> reshaped(const View& view, const Dims& dims);
// A view whose dimension i is dimension order[i].
Tensor permuted(const Tensor& tensor, const std::vector<std::size_t>& order);
// `length` elements of a dimension from `begin` on, in steps.
Tensor part_of(const Tensor& tensor, std::size_t dim, Index begin, Index length, Index step = 1);
// One of its dimensions, of extent 1, left out, unless it is the only one.
Tensor without(const Tensor& tensor, std::size_t dim);
// Broadcast to `dims`, of at least its rank.
Tensor expanded(const Tensor& tensor, const Dims& dims);

}  // namespace strata::cudnn
