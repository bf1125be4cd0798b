// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products: the operations with weights.
#include "kit/convolution.hpp"

#include <algorithm>
#include <stdexcept>

#include "kit/one_pixel.hpp"
#include "kit/post_ops.hpp"

namespace kit {
namespace {

// A weight that is trained stays row-major where three products read it: a product with its transposed form.
void trained_product(Program& program, const Tensor& source, const Tensor& result, Weight weight, Weight bias,
                     PostOps then) {
  const Extent rows = source.shape[0], outputs = weight.shape[0];
  for (PostOp& post : then)
    if (post.with && post.with.shape.elements() == rows * outputs)
      post.with = {post.with.region, post.with.at, {rows, outputs}, Layout::plain, post.with.type};
  if (bias) then.insert(then.begin(), plus(program.stored(bias).as({1, outputs})));
  matrix_product(program, {.left = source,
                           .right = in_type(program.internals(), program.stored(weight).as({outputs, weight.shape[1]}),
                                            source.type),
                           .result = result,
                           .transposed = true,
                           .then = then});
}

void trained_linear(Program& program, const Linear& how) {
  const Extent inputs = how.weight.shape[1], outputs = how.weight.shape[0];
  const Extent rows = inputs == 0 ? 0 : how.source.shape.elements() / inputs;
  trained_product(program, how.source.as({rows, inputs}), how.result.as({rows, outputs}), how.weight, how.bias,
                  how.then);
}

}  // namespace

dnnl::convolution_backward_weights::primitive_desc gradient_of_weight(Internals& in,
                                                                      const ConvolutionBackwardWeights& how,
                                                                      const memory::dims& dims,
                                                                      const memory::desc& bias) {
  const auto described = [&](const memory::desc& source, const memory::desc& gradient) {
    return dnnl::convolution_backward_weights::primitive_desc(
        in.engine, dnnl::algorithm::convolution_direct, source, any(dims), bias, gradient, dims_of(how.stride),
        counted_from_zero(how.dilation), dims_of(how.before), dims_of(how.after),
        forward_of(in, how, source, dims, gradient), plain_attributes());
  };
  auto pd = described(desc_of(how.source), desc_of(how.gradient));
  if (is_reference(pd.impl_info_str()))
    pd =
        described(any(dims_of(how.source.shape), how.source.type), any(dims_of(how.gradient.shape), how.gradient.type));
  return pd;
}

namespace {

// Before the forward pass in bfloat16 of a weight that is trained: it lies, in float32, as its gradient does.
void keep_as_its_gradient(Program& program, const Convolution& how) {
  Internals& in = program.internals();
  if (in.weights.at(static_cast<std::size_t>(how.weight.number)).home >= 0) return;
  const auto dims = grouped(how.weight.shape, how.groups);
  ConvolutionBackwardWeights gradient{.gradient = how.result,
                                      .source = how.source,
                                      .shape = how.weight.shape,
                                      .stride = how.stride,
                                      .dilation = how.dilation,
                                      .before = how.before,
                                      .after = how.after,
                                      .groups = how.groups};
  gradient.gradient.type = how.source.type;
  const auto pd = gradient_of_weight(in, gradient, dims, {});
  static_cast<void>(in.packed(how.weight, row_major(dims), pd.diff_weights_desc()));
}

}  // namespace

void convolution(Program& program, const Convolution& how) {
  Internals& in = program.internals();
  if (in.weights.at(static_cast<std::size_t>(how.weight.number)).trained &&
      gives_one_pixel(how.source, how.weight.shape, how.result, how.before, how.groups))
    return trained_product(program, rows_of_pixels(program, how.source), as_rows(how.result), how.weight, how.bias,
                           how.then);
  if (in.weights.at(static_cast<std::size_t>(how.weight.number)).trained && how.source.type != Type::float32)
    keep_as_its_gradient(program, how);
  const auto dims = grouped(how.weight.shape, how.groups);
  const PostOpsAttr posted(in, how.then, how.result);
  const auto bias = how.bias ? row_major(dims_of(how.bias.shape)) : memory::desc();
  const auto described = [&](const memory::desc& source, const memory::desc& result) {
    return dnnl::convolution_forward::primitive_desc(
        in.engine, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, source,
        any(dims, how.source.type), bias, result, dims_of(how.stride), counted_from_zero(how.dilation),
        dims_of(how.before), dims_of(how.after), posted.attributes);
  };
  auto pd = described(desc_of(how.source), desc_of(how.result));
  // what follows on it reads other tensors in the layout of the result
  const bool alone = std::none_of(how.then.begin(), how.then.end(), [](const PostOp& post) { return bool{post.with}; });
  if (alone && is_reference(pd.impl_info_str()))
    pd = described(any(dims_of(how.source.shape), how.source.type), any(dims_of(how.result.shape), how.result.type));
  const memory result = in.handle(how.result, desc_of(how.result));
  const bool direct = pd.dst_desc() == result.get_desc();
  const memory destination = direct ? result : in.handle(in.temporary_bytes(pd.dst_desc().get_size()), pd.dst_desc());
  auto arguments = posted.arguments;
  arguments.emplace_back(DNNL_ARG_SRC, read_as(in, how.source, pd.src_desc()));
  arguments.emplace_back(DNNL_ARG_WEIGHTS, in.packed(how.weight, row_major(dims), pd.weights_desc()));
  if (how.bias) arguments.emplace_back(DNNL_ARG_BIAS, in.packed(how.bias, bias, bias));
  arguments.emplace_back(DNNL_ARG_DST, destination);
  in.add(dnnl::convolution_forward(pd), pd, std::move(arguments));
  if (!direct) in.add_reorder(destination, result);
}

void linear(Program& program, const Linear& how) {
  Internals& in = program.internals();
  const Extent inputs = how.weight.shape[1], outputs = how.weight.shape[0];
  const Extent rows = inputs == 0 ? 0 : how.source.shape.elements() / inputs;
  if (in.weights.at(static_cast<std::size_t>(how.weight.number)).trained) return trained_linear(program, how);
  const auto weight = row_major({outputs, inputs});
  const Tensor source = how.source.as({rows, inputs}), result = how.result.as({rows, outputs});
  PostOps then = how.then;
  for (PostOp& post : then)
    if (post.with && post.with.shape.elements() == rows * outputs) post.with = post.with.as({rows, outputs});
  const PostOpsAttr posted(in, then, result);
  const auto bias = how.bias ? row_major({outputs}) : memory::desc();
  const dnnl::inner_product_forward::primitive_desc pd(in.engine, dnnl::prop_kind::forward_inference, desc_of(source),
                                                       any({outputs, inputs}, source.type), bias, desc_of(result),
                                                       posted.attributes);
  auto arguments = posted.arguments;
  arguments.emplace_back(DNNL_ARG_SRC, in.handle(source, pd.src_desc()));
  arguments.emplace_back(DNNL_ARG_WEIGHTS, in.packed(how.weight, weight, pd.weights_desc()));
  if (how.bias) arguments.emplace_back(DNNL_ARG_BIAS, in.packed(how.bias, bias, bias));
  arguments.emplace_back(DNNL_ARG_DST, in.handle(result, pd.dst_desc()));
  in.add(dnnl::inner_product_forward(pd), pd, std::move(arguments));
}

void matrix_product(Program& program, const MatrixProduct& how) {
  Internals& in = program.internals();
  auto left = dims_of(how.left.shape), right = dims_of(how.right.shape);
  if (left.size() == 1) left.insert(left.begin(), 1);
  if (right.size() == 1) right.push_back(1);
  const auto rank = std::max(left.size(), right.size());
  left.insert(left.begin(), rank - left.size(), 1);
  right.insert(right.begin(), rank - right.size(), 1);
  auto strides = row_major_strides(right), left_strides = row_major_strides(left);
  const auto transpose = [rank](memory::dims& dims, memory::dims& of) {
    std::swap(dims[rank - 1], dims[rank - 2]);
    std::swap(of[rank - 1], of[rank - 2]);
  };
  if (how.transposed) transpose(right, strides);
  if (how.left_transposed) transpose(left, left_strides);
  auto dims = left;
  dims.back() = right.back();
  for (std::size_t i = 0; i + 2 < rank; ++i) dims[i] = std::max(left[i], right[i]);
  Shape shape;
  for (const auto dim : dims) shape[shape.rank++] = dim;
  const Tensor result = how.result.as(shape);
  const PostOpsAttr posted(in, how.then, result);
  const memory::desc of_right(right, data_type_of(how.right.type), strides);
  const memory::desc of_left(left, data_type_of(how.left.type), left_strides);
  const dnnl::matmul::primitive_desc pd(in.engine, of_left, of_right, desc_of(result), posted.attributes);
  auto arguments = posted.arguments;
  arguments.emplace_back(DNNL_ARG_SRC, in.handle(how.left, pd.src_desc()));
  arguments.emplace_back(DNNL_ARG_WEIGHTS, in.handle(how.right, of_right));
  arguments.emplace_back(DNNL_ARG_DST, in.handle(result, pd.dst_desc()));
  in.add(dnnl::matmul(pd), pd, std::move(arguments));
}

}  // namespace kit
