// SPDX-License-Identifier: Apache-2.0
// Convolutions and linear layers by the kit's own kernels, as calls of a program.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "kit/blocks.hpp"
#include "kit/direct.hpp"
#include "kit/internals.hpp"
#include "kit/operations.hpp"
#include "kit/threads.hpp"
#include "kit/training.hpp"
#include "kit/winograd.hpp"

namespace kit {
namespace {

using kernels::Activation;
using kernels::Direct;
using kernels::Winograd;

int number(Extent extent) {
  if (extent < 0 || extent > std::numeric_limits<int>::max()) throw std::length_error("an extent beyond 32 bits");
  return static_cast<int>(extent);
}

void need_blocks(const Tensor& tensor) {
  if (tensor.layout != own_layout)
    throw std::logic_error("a tensor in blocks of other than " + std::to_string(kernels::kBlock) +
                           " channels: compile the kit with the KIT_BLOCK that the stages were written for");
}

// What a kernel does to its sums.
struct Finish {
  Tensor residual;
  Activation activation;
};

Finish finish_of(const PostOps& posts) {
  Finish finish;
  for (const PostOp& post : posts) {
    const bool last = finish.activation.kind != Activation::Kind::none;
    const auto& [kind, low, high] = post.function;
    if (post.kind == PostOp::Kind::add && !last && !finish.residual)
      finish.residual = post.with;
    else if (post.kind == PostOp::Kind::function && !last && kind == Function::Kind::relu && low == 0)
      finish.activation.kind = Activation::Kind::relu;
    else if (post.kind == PostOp::Kind::function && !last && kind == Function::Kind::clip && low <= 0 && high >= 0)
      finish.activation = {Activation::Kind::clamp, low, high};
    else
      throw std::logic_error("a post that the kit's own kernels lack");
  }
  return finish;
}

// A kernel with its memory; what is left out is an empty handle.
template <class Kernel>
struct Own {
  Kernel kernel;
  memory source, weights, bias, residual, result, scratch;

  static float* at(const memory& tensor) { return tensor ? static_cast<float*>(tensor.get_data_handle()) : nullptr; }
  void operator()() const { kernel.run(at(source), at(weights), at(bias), at(residual), at(result), at(scratch)); }
};

bool changes(const Internals& in, Weight weight) {
  const auto& loaded = in.weights.at(static_cast<std::size_t>(weight.number));
  return loaded.trained || loaded.changed;
}

memory padded_bias(Internals& in, Weight bias) {
  const int channels = number(bias.shape.elements());
  // stored bytes are whole lines of the cache, zeros behind what is used
  static_assert(kernels::kBlock <= kernels::kLine);
  const auto desc = row_major({channels});
  if (changes(in, bias)) return in.packed(bias, desc, desc);
  return in.packed(bias, "padded", static_cast<std::size_t>(kernels::padded(channels)),
                   [channels](const float* from, float* to) { std::copy_n(from, channels, to); });
}

template <class Kernel>
memory packed_once(Internals& in, const Kernel& kernel, Weight weight, const std::string& packing) {
  return in.packed(weight, packing, kernel.weight_floats(),
                   [kernel](const float* from, float* to) { kernel.pack(from, to); });
}

template <class Kernel>
void add_own(Internals& in, const Kernel& kernel, const memory& weights, const Convolution& how, const Finish& finish,
             const char* name) {
  Own<Kernel> own{kernel, in.handle(how.source, desc_of(how.source)), weights, {}, {}, {}, {}};
  if (how.bias) own.bias = padded_bias(in, how.bias);
  if (finish.residual) own.residual = in.handle(finish.residual, desc_of(finish.residual));
  own.result = in.handle(how.result, desc_of(how.result));
  if (const auto floats = static_cast<memory::dim>(kernel.scratch_floats()); floats > 0)
    own.scratch = in.scratchpad(row_major({floats}));
  in.add_own(std::move(own), false, name);
}

// Places of `how.weight` and paddings as for a convolution with a kernel of two dimensions.
void add_direct(Internals& in, const Convolution& how) {
  need_blocks(how.source);
  const Finish finish = finish_of(how.then);
  const Shape &source = how.source.shape, &weight = how.weight.shape, &result = how.result.shape;
  const kernels::Convolution shape{.batch = number(source[0]),
                                   .in_channels = number(source[1]),
                                   .out_channels = number(weight[0]),
                                   .height = number(source[2]),
                                   .width = number(source[3]),
                                   .kernel_height = number(weight[2]),
                                   .kernel_width = number(weight[3]),
                                   .stride_height = number(how.stride[0]),
                                   .stride_width = number(how.stride[1]),
                                   .pad_top = number(how.before[0]),
                                   .pad_left = number(how.before[1]),
                                   .out_height = number(result[2]),
                                   .out_width = number(result[3]),
                                   .dilation_height = number(how.dilation[0]),
                                   .dilation_width = number(how.dilation[1]),
                                   .activation = finish.activation};
  const int threads = kernels::most_threads();
  std::string packing = "direct";  // which taps are left depends on all that shapes the result
  for (const int part :
       {shape.height, shape.width, shape.kernel_height, shape.kernel_width, shape.stride_height, shape.stride_width,
        shape.pad_top, shape.pad_left, shape.out_height, shape.out_width, shape.dilation_height, shape.dilation_width})
    packing.append(1, ' ').append(std::to_string(part));
  const Direct kernel(shape, Direct::plan(shape, threads), threads);
  add_own(in, kernel, packed_once(in, kernel, how.weight, packing), how, finish, "direct");
}

// Weights for one run, from the form that a convolution's gradients have and update.
struct PackedAnew {
  Winograd kernel;
  memory weights, packed;
  bool gradient;

  void operator()() const {
    const auto* from = static_cast<const float*>(weights.get_data_handle());
    auto* to = static_cast<float*>(packed.get_data_handle());
    gradient ? kernel.pack_gradient(from, to) : kernel.pack_blocks(from, to);
  }
};

memory packed_anew(Internals& in, const Winograd& kernel, Weight weight, bool gradient) {
  using tag = memory::format_tag;
  const auto dims = dims_of(weight.shape);
  const memory::desc blocks(dims, memory::data_type::f32, kernels::kBlock == 16 ? tag::OIhw16i16o : tag::OIhw8i8o);
  const auto desc = row_major({static_cast<memory::dim>(kernel.weight_floats())});
  PackedAnew pack{kernel, in.packed(weight, row_major(dims), blocks),
                  in.handle(in.temporary_bytes(desc.get_size()), desc), gradient};
  const memory result = pack.packed;
  in.add_own(std::move(pack), true, "kit:pack");
  return result;
}

// `gradient`: of the input of a convolution that has this weight.
void add_winograd(Internals& in, const Convolution& how, bool gradient) {
  need_blocks(how.source);
  need_blocks(how.result);
  const Finish finish = finish_of(how.then);
  const Shape& source = how.source.shape;
  const bool packs = gradient || changes(in, how.weight);
  const kernels::Convolution3x3 shape{
      number(source[0]), number(source[1]),     number(how.result.shape[1]), number(source[2]),
      number(source[3]), number(how.before[0]), finish.activation,           packs};
  const int threads = kernels::most_threads();
  const auto plan = Winograd::plan(shape, threads);
  const char* name = plan.tile == 2 ? "winograd F(2x2,3x3)" : "winograd F(4x4,3x3)";
  const Winograd kernel(shape, plan, threads);
  add_own(in, kernel, packs ? packed_anew(in, kernel, how.weight, gradient) : packed_once(in, kernel, how.weight, name),
          how, finish, name);
}

}  // namespace

void winograd_convolution(Program& program, const Convolution& how) {
  add_winograd(program.internals(), how, false);
}

void winograd_backward_data(Program& program, const ConvolutionBackwardData& how) {
  const Extent padding = 2 - how.before[0];
  add_winograd(program.internals(),
               {.source = how.gradient,
                .weight = how.weight,
                .result = how.result,
                .stride = how.stride,
                .dilation = how.dilation,
                .before = {padding, padding},
                .after = {padding, padding}},
               true);
}

void direct_convolution(Program& program, const Convolution& how) {
  need_blocks(how.result);
  add_direct(program.internals(), how);
}

void direct_linear(Program& program, const Linear& how) {
  const Shape& image = how.source.shape;
  const Extent rows = how.result.shape[0], outputs = how.weight.shape[0];
  if (outputs % kernels::kBlock != 0) throw std::logic_error("outputs of a linear layer that fill no blocks");
  // its result of one pixel lies in blocks as it does row-major
  add_direct(program.internals(), {.source = how.source,
                                   .weight = how.weight.as({outputs, image[1], image[2], image[3]}),
                                   .bias = how.bias,
                                   .result = how.result.as({rows, outputs, 1, 1}),
                                   .stride = {1, 1},
                                   .dilation = {1, 1},
                                   .before = {0, 0},
                                   .after = {0, 0},
                                   .then = how.then});
}

}  // namespace kit
