// SPDX-License-Identifier: Apache-2.0
// Gradients by oneDNN's calls: convolutions, poolings, functions.
#include <stdexcept>

#include "kit/convolution.hpp"
#include "kit/descent.hpp"
#include "kit/one_pixel.hpp"
#include "kit/post_ops.hpp"

namespace kit {
namespace {

using dnnl::algorithm;

// The gradient lies as the library gives it; the update needs it as the parameter's home has it.
void add_update(Internals& in, Weight weight, memory gradient) {
  const auto& home = in.home_of(weight);
  if (gradient.get_desc().get_dims() != home.get_dims()) {
    // the home is row-major and the library's form is not: the same elements in the same order
    const Tensor same = in.temporary_bytes(home.get_size());
    in.add_reorder(gradient, in.handle(same, row_major(gradient.get_desc().get_dims())));
    gradient = in.handle(same, home);
  } else if (gradient.get_desc() != home) {
    const memory same = in.handle(in.temporary_bytes(home.get_size()), home);
    in.add_reorder(gradient, same);
    gradient = same;
  }
  in.add_own(Descent{&in, weight.number, gradient}, false, "kit:update");
}

}  // namespace

void convolution_backward_data(Program& program, const ConvolutionBackwardData& how) {
  Internals& in = program.internals();
  if (gives_one_pixel(how.result, how.weight.shape, how.gradient, how.before, how.groups)) {
    const bool whole = how.result.shape.elements() == how.result.shape[0] * how.result.shape[1];
    const Tensor rows = whole ? as_rows(how.result) : in.temporary({how.result.shape[0], how.result.shape[1]});
    const Tensor weight =
        in_type(in, program.stored(how.weight).as({how.weight.shape[0], how.weight.shape[1]}), how.gradient.type);
    matrix_product(program, {.left = as_rows(how.gradient), .right = weight, .result = rows});
    if (!whole) put_rows_into(program, rows, how.result);
    return;
  }
  const auto dims = grouped(how.weight.shape, how.groups);
  const auto type = how.gradient.type;
  Tensor image = how.result;  // of which the result is the gradient
  image.type = type;
  const auto described = [&](const memory::desc& result, const memory::desc& gradient, const memory::desc& source) {
    return dnnl::convolution_backward_data::primitive_desc(
        in.engine, algorithm::convolution_direct, result, any(dims, type), gradient, dims_of(how.stride),
        counted_from_zero(how.dilation), dims_of(how.before), dims_of(how.after),
        forward_of(in, how, source, dims, gradient), plain_attributes());
  };
  auto pd = described(desc_of(how.result), desc_of(how.gradient), desc_of(image));
  if (is_reference(pd.impl_info_str())) {
    const auto shape = dims_of(image.shape);
    pd = described(any(shape), any(dims_of(how.gradient.shape), type), any(shape, type));
  }
  const memory gradient = read_as(in, how.gradient, pd.diff_dst_desc());
  const memory weight = in.packed(how.weight, row_major(dims), pd.weights_desc());
  const memory result = in.handle(how.result, desc_of(how.result));
  const bool direct = pd.diff_src_desc() == result.get_desc();
  const memory destination =
      direct ? result : in.handle(in.temporary_bytes(pd.diff_src_desc().get_size()), pd.diff_src_desc());
  in.add(dnnl::convolution_backward_data(pd), pd,
         {{DNNL_ARG_DIFF_DST, gradient}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DIFF_SRC, destination}});
  if (!direct) in.add_reorder(destination, result);
}

void convolution_backward_weights(Program& program, const ConvolutionBackwardWeights& how) {
  Internals& in = program.internals();
  if (how.weight && gives_one_pixel(how.source, how.shape, how.gradient, how.before, how.groups)) {
    const auto& home = in.home_of(how.weight);
    Tensor gradient = in.temporary_bytes(home.get_size());
    gradient.shape = {how.shape[0], how.shape[1]};
    matrix_product(program, {.left = as_rows(how.gradient),
                             .right = rows_of_pixels(program, how.source),
                             .result = gradient,
                             .left_transposed = true});
    in.add_own(Descent{&in, how.weight.number, in.handle(gradient, home)}, false, "kit:update");
    if (!how.bias) return;
    const Tensor of_bias = in.temporary({1, how.shape[0]});
    sum(program, {as_rows(how.gradient), of_bias});
    return descend(program, {how.bias, of_bias});
  }
  const auto dims = grouped(how.shape, how.groups);
  const bool with_bias = how.bias || how.of_bias;
  const auto bias = with_bias ? row_major({how.shape[0]}) : memory::desc();
  const auto pd = gradient_of_weight(in, how, dims, bias);
  const memory source = read_as(in, how.source, pd.src_desc()),
               gradient = read_as(in, how.gradient, pd.diff_dst_desc());
  const memory of_weight = in.handle(in.temporary_bytes(pd.diff_weights_desc().get_size()), pd.diff_weights_desc());
  std::vector<std::pair<int, memory>> arguments{
      {DNNL_ARG_SRC, source}, {DNNL_ARG_DIFF_DST, gradient}, {DNNL_ARG_DIFF_WEIGHTS, of_weight}};
  memory of_bias;
  if (with_bias) {
    of_bias = in.handle(how.of_bias ? how.of_bias : in.temporary_bytes(bias.get_size()), bias);
    arguments.emplace_back(DNNL_ARG_DIFF_BIAS, of_bias);
  }
  in.add(dnnl::convolution_backward_weights(pd), pd, std::move(arguments));
  if (how.of_weight) in.add_reorder(of_weight, in.handle(how.of_weight, row_major(dims)));
  if (how.weight) add_update(in, how.weight, of_weight);
  if (how.bias) add_update(in, how.bias, of_bias);
}

void pool_backward(Program& program, Pool::Kind kind, const Pool& how, const Tensor& workspace) {
  Internals& in = program.internals();
  const auto which = kind == Pool::Kind::max       ? algorithm::pooling_max
                     : kind == Pool::Kind::average ? algorithm::pooling_avg_exclude_padding
                                                   : algorithm::pooling_avg_include_padding;
  const auto dilation = counted_from_zero(how.dilation);
  const dnnl::pooling_forward::primitive_desc forward(
      in.engine, dnnl::prop_kind::forward_training, which, desc_of(how.result), desc_of(how.source),
      dims_of(how.stride), dims_of(how.kernel), dilation, dims_of(how.before), dims_of(how.after), plain_attributes());
  const dnnl::pooling_backward::primitive_desc pd(in.engine, which, desc_of(how.result), desc_of(how.source),
                                                  dims_of(how.stride), dims_of(how.kernel), dilation,
                                                  dims_of(how.before), dims_of(how.after), forward, plain_attributes());
  std::vector<std::pair<int, memory>> arguments{{DNNL_ARG_DIFF_DST, in.handle(how.source, pd.diff_dst_desc())},
                                                {DNNL_ARG_DIFF_SRC, in.handle(how.result, pd.diff_src_desc())}};
  if (workspace) arguments.emplace_back(DNNL_ARG_WORKSPACE, in.handle(workspace, pd.workspace_desc()));
  in.add(dnnl::pooling_backward(pd), pd, std::move(arguments));
}

void max_pool_training(Program& program, const Pool& how, const Tensor& workspace) {
  Internals& in = program.internals();
  const dnnl::pooling_forward::primitive_desc pd(in.engine, dnnl::prop_kind::forward_training, algorithm::pooling_max,
                                                 desc_of(how.source), desc_of(how.result), dims_of(how.stride),
                                                 dims_of(how.kernel), counted_from_zero(how.dilation),
                                                 dims_of(how.before), dims_of(how.after), plain_attributes());
  if (pd.workspace_desc().get_size() > static_cast<std::size_t>(workspace.shape.elements()) * sizeof(float))
    throw std::logic_error("the library keeps more of a maximum pooling than was planned for");
  in.add(dnnl::pooling_forward(pd), pd,
         {{DNNL_ARG_SRC, in.handle(how.source, pd.src_desc())},
          {DNNL_ARG_DST, in.handle(how.result, pd.dst_desc())},
          {DNNL_ARG_WORKSPACE, in.handle(workspace, pd.workspace_desc())}});
}

void softmax_backward(Program& program, const SoftmaxBackward& how) {
  Internals& in = program.internals();
  const auto which = how.of_log ? algorithm::softmax_log : algorithm::softmax_accurate;
  const auto data = desc_of(how.source), gradient = desc_of(how.gradient);
  const dnnl::softmax_forward::primitive_desc forward(in.engine, dnnl::prop_kind::forward_training, which, data, data,
                                                      how.axis, plain_attributes());
  const dnnl::softmax_backward::primitive_desc pd(in.engine, which, desc_of(how.result), gradient, data, how.axis,
                                                  forward, plain_attributes());
  in.add(dnnl::softmax_backward(pd), pd,
         {{DNNL_ARG_DST, in.handle(how.source, data)},
          {DNNL_ARG_DIFF_DST, in.handle(how.gradient, gradient)},
          {DNNL_ARG_DIFF_SRC, in.handle(how.result, pd.diff_src_desc())}});
}

void apply_backward(Program& program, const ApplyBackward& how) {
  Internals& in = program.internals();
  auto which = algorithm_of(how.function);
  if (how.of_result)
    which = how.function.kind == Function::Kind::logistic ? algorithm::eltwise_logistic_use_dst_for_bwd
                                                          : algorithm::eltwise_tanh_use_dst_for_bwd;
  const auto data = desc_of(how.source), gradient = desc_of(how.gradient);
  const dnnl::eltwise_forward::primitive_desc forward(in.engine, dnnl::prop_kind::forward_training, which, data, data,
                                                      how.function.alpha, how.function.beta, plain_attributes());
  const dnnl::eltwise_backward::primitive_desc pd(in.engine, which, desc_of(how.result), gradient, data,
                                                  how.function.alpha, how.function.beta, forward, plain_attributes());
  in.add(dnnl::eltwise_backward(pd), pd,
         {{DNNL_ARG_DIFF_DST, in.handle(how.gradient, gradient)},
          {how.of_result ? DNNL_ARG_DST : DNNL_ARG_SRC, in.handle(how.source, data)},
          {DNNL_ARG_DIFF_SRC, in.handle(how.result, pd.diff_src_desc())}});
}

}  // namespace kit
