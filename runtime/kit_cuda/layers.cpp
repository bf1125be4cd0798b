// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of matrices by the libraries, forward and backward. What a plan of a library does not take
// along is done by one more kernel.
#include <algorithm>
#include <stdexcept>

#include "kit_cuda/kernels/move.hpp"
#include "kit_cuda/kernels/reduction.hpp"
#include "kit_cuda/post_ops.hpp"

namespace kit {
namespace {

using device::Direction;

template <class How>
device::Convolution described(Direction direction, const How& how, const Tensor& image, const Tensor& filter,
                              const Tensor& result) {
  device::Convolution convolution{
      direction, view_of(image), view_of(filter), view_of(result), {}, how.groups, {}, image.type == Type::bfloat16};
  for (int d = 0; d < how.stride.rank; ++d) {
    convolution.window.kernel[d] = filter.shape[d + 2];
    convolution.window.stride[d] = how.stride[d];
    convolution.window.dilation[d] = how.dilation[d];
    convolution.window.before[d] = how.before[d];
  }
  return convolution;
}

// The libraries pad alike on both sides. Where a network does not, zeros are written around a copy of the image.
template <class How>
bool pads_alike(const How& how) {
  return std::equal(how.before.begin(), how.before.end(), how.after.begin(), how.after.end());
}

struct Padded {
  Tensor whole;
  Shape from;  // where the image is in it
};

template <class How>
Padded room_around(Internals& in, const Tensor& image, How& how) {
  Padded padded;
  Shape shape = image.shape;
  padded.from = {0, 0};
  for (int d = 0; d < how.before.rank; ++d) {
    shape[d + 2] += how.before[d] + how.after[d];
    padded.from[padded.from.rank++] = how.before[d];
    how.before[d] = how.after[d] = 0;
  }
  padded.whole = in.temporary(shape, image.layout, image.type);
  return padded;
}

// The image's part of what has room around it.
Part inner_part(const Padded& room, const Tensor& image) {
  Part part{view_of(room.whole)};
  for (int d = 0; d < part.view.rank; ++d) {
    part.first += room.from[d] * part.view.strides[d];
    part.view.extents[d] = image.shape[d];
  }
  return part;
}

Tensor with_zeros_around(Internals& in, const Tensor& image, const Padded& room) {
  in.add(
      "pad",
      [&in, image, room](Stream on) {
        device::clear(in.address(room.whole), bytes_of(room.whole.shape, room.whole.type), on);
        in.copy(on, image, {view_of(image)}, room.whole, inner_part(room, image));
      },
      true);
  return room.whole;
}

// Where a convolution of bfloat16 writes whose result is wanted in float32: cuDNN, asked without a device, names no
// plan that does both, and autocast rounds results as well.
Tensor rounded(Internals& in, const Tensor& result) {
  return in.temporary(result.shape, result.layout, Type::bfloat16);
}

// A plan for the tensors as they lie; nullopt: there may be one for row-major copies of them.
std::optional<int> plan_as_it_lies(const Internals& in, const device::Convolution& call, Layout layout) {
  const auto plan = in.libraries->plan(call);
  if (!plan && layout == Layout::plain)
    throw std::runtime_error(std::string("cuDNN has no plan for ") + in.step + ": " + in.libraries->refusal());
  return plan;
}

Tensor plain_copy(Internals& in, const Tensor& tensor) {
  const Tensor copy = in.temporary(tensor.shape, Layout::plain, tensor.type);
  in.add_copy(tensor, copy);
  return copy;
}

// A bias, which may be left out.
Tensor operand_of(Program& program, Weight weight, Type type) {
  if (!weight) return {};
  return type == Type::float32 ? program.stored(weight) : program.internals().packed(weight, Layout::plain, type);
}

void add_convolution(Internals& in, int plan, const char* kernel, const Tensor& image, const Tensor& filter,
                     const Tensor& result, const Tensor& bias = {}, const Tensor& summand = {}) {
  in.add(kernel, [&in, plan, image, filter, result, bias, summand](Stream) {
    in.libraries->run(plan, device::ConvolutionOperands{in.address(image), in.address(filter), in.address(result),
                                                        in.address(bias), in.address(summand)});
  });
}

}  // namespace

void convolution(Program& program, const Convolution& original) {
  Internals& in = program.internals();
  Convolution how = original;
  if (how.result.shape.elements() == 0) return;
  if (how.result.type != how.source.type) {
    how.result = rounded(in, original.result);
    how.then = {};
    convolution(program, how);
    in.add_copy(how.result, original.result);
    return add_post_ops(in, original.result, {}, original.then);
  }
  const Tensor filter = in.packed(how.weight, how.result.layout, how.source.type);
  if (!pads_alike(how)) how.source = with_zeros_around(in, original.source, room_around(in, original.source, how));
  auto call = described(Direction::forward, how, how.source, filter, how.result);
  const auto fused = fused_of(how.then, how.result);
  if (fused) {
    call.then = fused->then;
    call.then.bias = static_cast<bool>(how.bias);
    if (const auto plan = in.libraries->plan(call))
      return add_convolution(in, *plan, call.then.is_empty() ? "cudnn" : "cudnn fused", how.source, filter, how.result,
                             operand_of(program, how.bias, how.source.type), fused->summand);
  }
  call.then = {};
  if (const auto plan = plan_as_it_lies(in, call, how.result.layout)) {
    add_convolution(in, *plan, "cudnn", how.source, filter, how.result);
  } else {
    how.source = plain_copy(in, how.source);
    how.result = in.temporary(original.result.shape, Layout::plain, original.result.type);
    how.bias = {};
    how.then = {};
    convolution(program, how);
    in.add_copy(how.result, original.result);
  }
  add_post_ops(in, original.result, operand_of(program, original.bias, Type::float32), original.then);
}

void convolution_backward_data(Program& program, const ConvolutionBackwardData& original) {
  Internals& in = program.internals();
  ConvolutionBackwardData how = original;
  if (how.result.shape.elements() == 0) return;
  if (how.result.type != how.gradient.type) {
    how.result = rounded(in, original.result);
    convolution_backward_data(program, how);
    return in.add_copy(how.result, original.result);
  }
  const Tensor filter = in.packed(how.weight, how.gradient.layout, how.gradient.type);
  Padded room{how.result, {}};
  if (!pads_alike(how)) room = room_around(in, original.result, how);
  const auto call = described(Direction::data, how, room.whole, filter, how.gradient);
  if (const auto plan = plan_as_it_lies(in, call, how.gradient.layout)) {
    add_convolution(in, *plan, "cudnn data", room.whole, filter, how.gradient);
  } else {
    how.gradient = plain_copy(in, how.gradient);
    how.result = in.temporary(room.whole.shape, Layout::plain, room.whole.type);
    convolution_backward_data(program, how);
    in.add_copy(how.result, room.whole);
  }
  if (pads_alike(original)) return;
  in.add(
      "unpad",
      [&in, room, result = original.result](Stream on) {
        in.copy(on, room.whole, inner_part(room, result), result, {view_of(result)});
      },
      true);
}

void convolution_backward_weights(Program& program, const ConvolutionBackwardWeights& original) {
  Internals& in = program.internals();
  ConvolutionBackwardWeights how = original;
  const Type type = how.gradient.type;
  const Tensor of_weight = in.temporary(how.shape, how.gradient.layout, type);
  if (!pads_alike(how)) how.source = with_zeros_around(in, original.source, room_around(in, original.source, how));
  const auto call = described(Direction::weights, how, how.source, of_weight, how.gradient);
  const auto plan = plan_as_it_lies(in, call, how.gradient.layout);
  if (!plan) {
    how.source = plain_copy(in, how.source);
    how.gradient = plain_copy(in, how.gradient);
    return convolution_backward_weights(program, how);
  }
  add_convolution(in, *plan, "cudnn weights", how.source, of_weight, how.gradient);
  if (how.of_weight) in.add_copy(of_weight, how.of_weight.as(how.shape));
  if (how.weight) {
    Tensor gradient = of_weight;
    if (const auto& home = in.home(how.weight); home.layout != of_weight.layout || home.type != type) {
      gradient = in.temporary(how.shape, home.layout);
      in.add_copy(of_weight, gradient);
    }
    in.add_descent(how.weight, gradient);
  }
  if (!how.bias && !how.of_bias) return;
  Shape channels{1, how.shape[0]};
  while (channels.rank < how.gradient.shape.rank) channels[channels.rank++] = 1;
  const Tensor of_bias = how.of_bias ? how.of_bias.as(channels) : in.temporary(channels);
  in.add("sum", [&in, gradient = in.as_float32(how.gradient), of_bias](Stream on) {
    device::reduce(on, in.source(gradient), device::Reduction::sum, in.target(of_bias));
  });
  if (how.bias) descend(program, {how.bias, of_bias});
}

namespace {

void exchange_last(device::View& view) {
  std::swap(view.extents[view.rank - 1], view.extents[view.rank - 2]);
  std::swap(view.strides[view.rank - 1], view.strides[view.rank - 2]);
}

void add_product(Program& program, const device::Product& what, const Tensor& left, const Tensor& right,
                 const Tensor& result, Weight bias, const PostOps& posts) {
  if (result.shape.elements() == 0) return;
  Internals& in = program.internals();
  auto call = what;
  call.bfloat16 = left.type == Type::bfloat16;
  call.gives_float32 = result.type == Type::float32;
  const auto fused = fused_of(posts, result);
  std::optional<int> plan;
  if (fused && !fused->then.summand) {
    call.then = fused->then;
    call.then.bias = static_cast<bool>(bias);
    plan = in.libraries->plan(call);
  }
  const bool whole = plan.has_value();
  if (!whole) {
    call.then = {};
    plan = in.libraries->plan(call);
  }
  if (!plan)
    throw std::runtime_error(std::string("cuBLAS has no plan for ") + in.step + ": " + in.libraries->refusal());
  const Tensor with = whole ? operand_of(program, bias, result.type) : Tensor{};
  in.add(whole && !call.then.is_empty() ? "cublas fused" : "cublas",
         [&in, plan = *plan, left, right, result, with](Stream) {
           in.libraries->run(plan, device::ProductOperands{in.address(left), in.address(right), in.address(with),
                                                           in.address(result)});
         });
  if (!whole) add_post_ops(in, result, operand_of(program, bias, Type::float32), posts);
}

}  // namespace

void linear(Program& program, const Linear& how) {
  Internals& in = program.internals();
  const Extent inputs = how.weight.shape[1], outputs = how.weight.shape[0];
  const Extent rows = inputs == 0 ? 0 : how.source.shape.elements() / inputs;
  const Tensor source = how.source.as({rows, inputs}), result = how.result.as({rows, outputs}),
               weight = in.packed(how.weight, Layout::plain, source.type);
  PostOps then = how.then;
  for (PostOp& post : then)
    if (post.with && post.with.shape.elements() == rows * outputs) post.with = post.with.as({rows, outputs});
  device::Product product{view_of(source), view_of(weight), view_of(result), {}};
  exchange_last(product.right);
  add_product(program, product, source, weight, result, how.bias, then);
}

void matrix_product(Program& program, const MatrixProduct& how) {
  Tensor left = how.left, right = how.right;
  if (left.shape.rank == 1) left = left.as({1, left.shape[0]});
  if (right.shape.rank == 1) right = right.as({right.shape[0], 1});
  device::Product product{view_of(left), view_of(right), {}, {}};
  if (how.left_transposed) exchange_last(product.left);
  if (how.transposed) exchange_last(product.right);
  // with the dimensions of one element that the result may lack
  const int rank = std::max(product.left.rank, product.right.rank);
  Shape shape;
  shape.rank = rank;
  for (int d = 0; d < rank; ++d) {
    const int of_left = d - (rank - product.left.rank), of_right = d - (rank - product.right.rank);
    shape[d] = std::max<Extent>(of_left < 0 ? 1 : product.left.extents[of_left],
                                of_right < 0 ? 1 : product.right.extents[of_right]);
  }
  shape[rank - 2] = product.left.extents[product.left.rank - 2];
  shape[rank - 1] = product.right.extents[product.right.rank - 1];
  const Tensor result = how.result.as(shape);
  product.result = view_of(result);
  add_product(program, product, left, right, result, {}, how.then);
}

}  // namespace kit
