// SPDX-License-Identifier: Apache-2.0
// What a family of operations is given to make the calls of one node: its arguments by ATen's names, tensors, memory
// for results. Anything that cannot be done is thrown as Unsupported.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "library.hpp"
#include "primitives/arguments.hpp"

namespace strata::cudnn {

class Builder : public primitives::Arguments {
 public:
  Builder(Library& library, const graph::Graph& graph, const graph::Node& node, primitives::Steps& steps)
      : Arguments(graph, node), library_(library), steps_(steps) {}

  // Arguments. A tensor that is missing or null throws, but for `optional`.
  Tensor tensor(std::string_view argument) const;
  std::optional<Tensor> optional(std::string_view argument) const;
  std::vector<Tensor> tensors(std::string_view argument) const;
  Tensor int64_tensor(std::string_view argument) const;
  // An int64 tensor, or the only one of a list, for the first dimension.
  Tensor rows(std::string_view argument) const;
  const Library::Left& left(std::string_view argument) const { return library_.left(node_.tensor(argument)); }
  void leave(std::size_t i, Library::Left left) { library_.leave(node_.outputs.at(i), std::move(left)); }

  // The tensor as `view` says; a copy where it lies otherwise.
  Tensor in(const Tensor& tensor, const View& view);
  Tensor plain(const Tensor& tensor) { return in(tensor, row_major(tensor.dims())); }
  // As convolutions of this library have it: row-major, or channels last.
  Tensor image(const Tensor& tensor) { return in(tensor, image_view(tensor.dims())); }
  View image_view(const Dims& dims) const;
  // As a convolution or a product takes it: in bfloat16 where the case's precision says so.
  bool rounds() const { return library_.precision() == Precision::bfloat16; }
  Tensor operand(const Tensor& tensor);
  // The same elements in row-major order as another shape: a view where the layout allows, else after a copy.
  Tensor reshaped(const Tensor& tensor, const Dims& dims);

  // Memory for output `i`, which is to lie like `like` does, where it is an image alike; for something in between.
  Tensor result(const View& view, std::size_t i = 0);
  Tensor result_like(const Tensor& like, std::size_t i = 0) { return result(view_like(shape(i), like.view), i); }
  Tensor temporary(const View& view, Type type = Type::float32) { return library_.allocate(view, type); }
  static View view_like(const Dims& dims, const View& like);
  // A tensor with these values, made now: a mask.
  Tensor constant(const Dims& dims, const std::vector<float>& values);
  Tensor filled(const View& view, float value);
  Tensor filled_like(const Dims& dims, const Tensor& like, float value) {
    return filled(view_like(dims, like.view), value);
  }
  Tensor temporary_like(const Tensor& like) { return temporary(view_like(like.dims(), like.view)); }
  // Every tensor is described by strides, so that these are views.
  static const Tensor& strided(const Tensor& tensor) { return tensor; }
  static Tensor expanded(const Tensor& tensor, const Dims& dims) { return cudnn::expanded(tensor, dims); }
  static Tensor sliced(const Tensor& tensor, std::size_t dim, const primitives::Slice& slice) {
    return part_of(tensor, dim, slice.begin, slice.length, slice.step);
  }
  void move_into(const Tensor& part, const Tensor& whole, std::size_t dim, const primitives::Slice& slice) {
    move(part, sliced(whole, dim, slice));
  }
  // Output `i` is (a view of) this tensor: nothing is computed.
  void is(const Tensor& tensor, std::size_t i = 0) { library_.set_tensor(node_.outputs.at(i), tensor); }

  // A call of a library; kernels of strata's own.
  void call(BoundCall call, const View& from, const View& to);
  void own(std::function<void(kit_cuda::Stream)> run, const View& from, const View& to);
  // One that only moves elements, or gives them another type.
  void move(const Tensor& from, const Tensor& to);

  Calls& calls() { return library_.calls(); }
  Library& library() { return library_; }
  const kit_cuda::DropoutState* dropout() { return library_.dropout(steps_); }

 private:
  void add(std::string kernel, const View& from, const View& to, std::function<void()> run);

  Library& library_;
  primitives::Steps& steps_;
};

}  // namespace strata::cudnn
