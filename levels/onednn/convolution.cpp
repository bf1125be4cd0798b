// SPDX-License-Identifier: Apache-2.0
// Convolutions in one to three dimensions: direct algorithms only, with the bias that the call takes itself.
#include <numeric>

#include "operations.hpp"

namespace strata::onednn {

namespace {

using dnnl::convolution_forward;

void convolution(Builder& b) {
  const Tensor source = b.tensor("input");
  Tensor weight = b.tensor("weight");
  const auto bias = b.optional("bias");
  Dims dims = weight.dims();
  if (source.dims().size() != dims.size()) throw Unsupported("a convolution of an input without a batch");
  const auto window = counted_from_0(b.convolution_window(dims));
  if (const auto groups = b.integer("groups"); groups != 1) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
    weight = b.reshaped(weight, dims);
  }
  const auto any = [](const Dims& of) { return memory::desc(of, memory::data_type::f32, memory::format_tag::any); };
  const auto bias_desc = bias ? row_major(bias->dims()) : memory::desc();
  const convolution_forward::primitive_desc pd(b.engine(), dnnl::prop_kind::forward_inference,
                                               dnnl::algorithm::convolution_direct, any(source.dims()), any(dims),
                                               bias_desc, any(b.shape()), window.stride, window.dilation, window.before,
                                               window.after, Builder::attr());
  std::vector<std::pair<int, Tensor>> arguments{{DNNL_ARG_SRC, b.in(source, pd.src_desc())},
                                                {DNNL_ARG_WEIGHTS, b.in(weight, pd.weights_desc())}};
  if (bias) arguments.emplace_back(DNNL_ARG_BIAS, b.plain(*bias));
  arguments.emplace_back(DNNL_ARG_DST, b.result_of(pd));
  b.add(convolution_forward(pd), pd, std::move(arguments));
}

// oneDNN's deconvolution, whose weight has its first two dimensions the other way round; the padding behind is what is
// left of the result.
void transposed_convolution(Builder& b) {
  const Tensor source = b.tensor("input");
  const Tensor given = b.tensor("weight");
  const auto bias = b.optional("bias");
  const Dims kernel = given.dims(), from = source.dims(), to = b.shape();
  if (from.size() != kernel.size()) throw Unsupported("a transposed convolution of an input without a batch");
  const auto rank = kernel.size() - 2;
  const Dims stride = b.integers("stride", rank), before = b.integers("padding", rank);
  Dims dilation = b.integers("dilation", rank), after;
  for (std::size_t d = 0; d < rank; ++d) {
    after.push_back((from[d + 2] - 1) * stride[d] + dilation[d] * (kernel[d + 2] - 1) + 1 - before[d] - to[d + 2]);
    --dilation[d];
  }
  Dims dims{b.integer("groups"), kernel[0] / b.integer("groups")};
  dims.insert(dims.end(), kernel.begin() + 1, kernel.end());
  std::vector<std::size_t> order(dims.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::swap(order[1], order[2]);
  Tensor weight = permuted(b.reshaped(given, dims), order);
  if (dims[0] == 1) weight = without(weight, 0);
  const auto any = [](const Dims& of) { return memory::desc(of, memory::data_type::f32, memory::format_tag::any); };
  const auto bias_desc = bias ? row_major(bias->dims()) : memory::desc();
  const dnnl::deconvolution_forward::primitive_desc pd(
      b.engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct, any(from),
      any(weight.dims()), bias_desc, any(to), stride, dilation, before, after, Builder::attr());
  std::vector<std::pair<int, Tensor>> arguments{{DNNL_ARG_SRC, b.in(source, pd.src_desc())},
                                                {DNNL_ARG_WEIGHTS, b.in(weight, pd.weights_desc())}};
  if (bias) arguments.emplace_back(DNNL_ARG_BIAS, b.plain(*bias));
  arguments.emplace_back(DNNL_ARG_DST, b.result_of(pd));
  b.add(dnnl::deconvolution_forward(pd), pd, std::move(arguments));
}

}  // namespace

void add_convolutions(Operations& table) {
  for (const char* name : {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"})
    table[name] = transposed_convolution;
  for (const char* name : {"conv1d", "conv2d", "conv3d"}) table[name] = convolution;
}

}  // namespace strata::onednn
