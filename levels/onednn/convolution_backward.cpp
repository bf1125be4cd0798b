// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions: one call for the input, one for weight and bias together, each in the layouts it likes.
#include "operations.hpp"

namespace strata::onednn {
namespace {

using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;

constexpr auto direct = dnnl::algorithm::convolution_direct;

memory::desc any(const Dims& dims) {
  return {dims, memory::data_type::f32, memory::format_tag::any};
}

struct Convolution {
  Tensor gradient, input, weight;  // the weight with a dimension for its groups, if there are several
  primitives::Window window;
  Dims bias;
};

Convolution described(Builder& b) {
  Convolution conv{.gradient = b.tensor("grad_output"), .input = b.tensor("input"), .weight = b.tensor("weight")};
  Dims dims = conv.weight.dims();
  conv.window = counted_from_0(b.convolution_window(dims));
  conv.bias = {dims[0]};
  if (const auto groups = b.integer("groups"); groups != 1) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
    conv.weight = b.reshaped(conv.weight, dims);
  }
  return conv;
}

convolution_forward::primitive_desc hint_of(Builder& b, const Convolution& conv) {
  const auto& w = conv.window;
  return {b.engine(),
          dnnl::prop_kind::forward_training,
          direct,
          any(conv.input.dims()),
          any(conv.weight.dims()),
          any(conv.gradient.dims()),
          w.stride,
          w.dilation,
          w.before,
          w.after,
          Builder::attr()};
}

void of_input(Builder& b, const Convolution& conv, std::size_t output) {
  const auto& w = conv.window;
  const convolution_backward_data::primitive_desc pd(b.engine(), direct, any(conv.input.dims()),
                                                     any(conv.weight.dims()), any(conv.gradient.dims()), w.stride,
                                                     w.dilation, w.before, w.after, hint_of(b, conv), Builder::attr());
  b.call<convolution_backward_data>(pd, {{DNNL_ARG_DIFF_DST, b.in(conv.gradient, pd.diff_dst_desc())},
                                         {DNNL_ARG_WEIGHTS, b.in(conv.weight, pd.weights_desc())},
                                         {DNNL_ARG_DIFF_SRC, b.result(pd.diff_src_desc(), output)}});
}

// Of a grouped weight: as the graph has it, without the dimension of the groups; but where only the update reads it,
// in the library's layout.
void give_weight(Builder& b, const Tensor& gradient, std::size_t output) {
  if (gradient.dims() == b.shape(output) || !b.is_read(output)) return b.is(gradient, output);
  b.is(b.reshaped(gradient, b.shape(output)), output);
}

void of_weight(Builder& b, const Convolution& conv, std::size_t output, bool with_bias) {
  const auto& w = conv.window;
  const auto bias = with_bias ? row_major(conv.bias) : memory::desc();
  const convolution_backward_weights::primitive_desc pd(
      b.engine(), direct, any(conv.input.dims()), any(conv.weight.dims()), bias, any(conv.gradient.dims()), w.stride,
      w.dilation, w.before, w.after, hint_of(b, conv), Builder::attr());
  const Tensor to = b.temporary(pd.diff_weights_desc());
  std::vector<std::pair<int, Tensor>> arguments{{DNNL_ARG_DIFF_DST, b.in(conv.gradient, pd.diff_dst_desc())},
                                                {DNNL_ARG_SRC, b.in(conv.input, pd.src_desc())},
                                                {DNNL_ARG_DIFF_WEIGHTS, to}};
  if (with_bias) arguments.emplace_back(DNNL_ARG_DIFF_BIAS, b.result(pd.diff_bias_desc(), output + 1));
  b.add(convolution_backward_weights(pd), pd, std::move(arguments));
  give_weight(b, to, output);
}

// Of a bias beside a frozen weight: the sum over all but the channels.
void of_bias(Builder& b, const Convolution& conv, std::size_t output) {
  const Tensor x = b.plain(conv.gradient);
  Dims dims(x.dims().size(), 1);
  dims[1] = conv.bias[0];
  const Tensor to = b.temporary(row_major(dims));
  const dnnl::reduction::primitive_desc pd(b.engine(), dnnl::algorithm::reduction_sum, x.desc, to.desc, 0, 0,
                                           Builder::attr());
  b.call<dnnl::reduction>(pd, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, to}});
  b.is(b.reshaped(to, b.shape(output)), output);
}

void convolution_backward(Builder& b) {
  if (b.flag("transposed")) throw Unsupported("a transposed convolution");
  const auto mask = b.flags("output_mask");
  const Convolution conv = described(b);
  std::size_t output = 0;
  if (mask.at(0)) of_input(b, conv, output++);
  if (mask.at(1)) of_weight(b, conv, output, mask.at(2));
  if (mask.at(2) && !mask.at(1)) of_bias(b, conv, output);
}

}  // namespace

void add_convolutions_backward(Operations& table) {
  table["convolution_backward"] = convolution_backward;
}

}  // namespace strata::onednn
