// SPDX-License-Identifier: Apache-2.0
// Convolutions in one to three dimensions: direct algorithms only, with the bias that the call takes itself.
#include "operations.hpp"

namespace strata::onednn {

using dnnl::convolution_forward;

ConvolutionWindow convolution_window(Builder& b, const Dims& weight, std::size_t rank) {
  ConvolutionWindow window{b.integers("stride", rank), b.integers("dilation", rank), {}, {}};
  for (auto& one : window.dilation) --one;
  const auto name = b.text("padding");
  if (name.empty()) {
    window.before = window.after = b.integers("padding", rank);
    return window;
  }
  for (std::size_t i = 0; i < rank; ++i) {
    const auto whole = name == "same" ? (window.dilation[i] + 1) * (weight[weight.size() - rank + i] - 1) : 0;
    window.before.push_back(whole / 2);
    window.after.push_back(whole - whole / 2);
  }
  return window;
}

namespace {

void convolution(Builder& b) {
  const Tensor source = b.tensor("input");
  Tensor weight = b.tensor("weight");
  const auto bias = b.optional("bias");
  Dims dims = weight.dims();
  if (source.dims().size() != dims.size()) throw Unsupported("a convolution of an input without a batch");
  const auto window = convolution_window(b, dims, dims.size() - 2);
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

}  // namespace

void add_convolutions(Operations& table) {
  for (const char* name : {"conv1d", "conv2d", "conv3d"}) table[name] = convolution;
}

}  // namespace strata::onednn
