// SPDX-License-Identifier: Apache-2.0
#include "builder.hpp"

#include <fmt/format.h>

#include "kit_cuda/kernels/move.hpp"

namespace strata::cudnn {

Tensor Builder::tensor(std::string_view argument) const {
  return library_.tensor(graph_, node_.tensor(argument));
}

std::optional<Tensor> Builder::optional(std::string_view argument) const {
  if (!has(argument)) return std::nullopt;
  return tensor(argument);
}

std::vector<Tensor> Builder::tensors(std::string_view argument) const {
  std::vector<Tensor> all;
  for (const int value : values(argument)) all.push_back(library_.tensor(graph_, value));
  return all;
}

Tensor Builder::int64_tensor(std::string_view argument) const {
  return library_.integers(graph_, node_.tensor(argument));
}

Tensor Builder::rows(std::string_view argument) const {
  return library_.integers(graph_, only_value(argument));
}

Tensor Builder::in(const Tensor& tensor, const View& view) {
  return same_layout(tensor.view, view) ? tensor : library_.reordered(tensor, view, steps_);
}

Tensor Builder::operand(const Tensor& tensor) {
  if (!rounds()) return tensor;
  return library_.reordered(tensor, is_dense(tensor.view) ? tensor.view : row_major(tensor.dims()), steps_,
                            Type::bfloat16);
}

View Builder::image_view(const Dims& dims) const {
  return library_.layouts() == Layouts::channels_last ? channels_last(dims) : row_major(dims);
}

Tensor Builder::reshaped(const Tensor& tensor, const Dims& dims) {
  const Dims reshaped_dims = dims.empty() ? Dims{1} : dims;
  if (tensor.dims() == reshaped_dims) return tensor;
  Tensor view = tensor;
  if (const auto same_memory = cudnn::reshaped(tensor.view, reshaped_dims)) {
    view.view = *same_memory;
    return view;
  }
  view = plain(tensor);
  view.view = row_major(reshaped_dims);
  return view;
}

View Builder::view_like(const Dims& dims, const View& like) {
  View view = row_major(dims);
  if (like.rank == view.rank && is_channels_last(like)) return channels_last(dims);
  if (!is_dense(like) || Dims(like.extents, like.extents + like.rank) != dims) return view;
  return like;
}

Tensor Builder::result(const View& view, std::size_t i) {
  Tensor allocated = library_.allocate(view);
  is(allocated.dims() == shape(i) ? allocated : reshaped(allocated, shape(i)), i);
  return allocated;
}

Tensor Builder::constant(const Dims& dims, const std::vector<float>& values) {
  Tensor allocated = library_.allocate(row_major(dims));
  library_.upload(allocated, reinterpret_cast<const std::byte*>(values.data()));
  return allocated;
}

Tensor Builder::filled(const View& view, float value) {
  Tensor allocated = library_.allocate(view);
  kit_cuda::fill(library_.stream(), allocated.target(), value);
  return allocated;
}

void Builder::call(BoundCall call, const View& from, const View& to) {
  add(std::move(call.kernel), from, to, std::move(call.run));
}

void Builder::own(std::function<void(kit_cuda::Stream)> run, const View& from, const View& to) {
  add("strata", from, to, [run = std::move(run), stream = library_.stream()] { run(stream); });
}

void Builder::add(std::string kernel, const View& from, const View& to, std::function<void()> run) {
  primitives::Description what{.operation = std::string(operation()),
                               .kernel = std::move(kernel),
                               .layouts = fmt::format("{} -> {}", layout_name(from), layout_name(to)),
                               .moves_only = false,
                               .bytes_moved = 0};
  steps_.in_run.push_back(std::make_unique<primitives::FunctionCall>(std::move(what), std::move(run)));
}

void Builder::move(const Tensor& from, const Tensor& to) {
  steps_.in_run.push_back(std::make_unique<primitives::FunctionCall>(
      reorder(from, to), [stream = library_.stream(), from, to] { copy(stream, from, to); }));
}

}  // namespace strata::cudnn
