// SPDX-License-Identifier: Apache-2.0
// oneDNN's side of the contest (onednn_convolution.hpp).
#include "onednn_convolution.hpp"

#include "kit/vector.hpp"

namespace bench {

using dnnl::memory;

OneDnnConvolution::OneDnnConvolution(const Layer& layer, dnnl::algorithm algorithm, bool channels_last, float* source,
                                     const float* weights, float* bias, float* residual, float* destination,
                                     int copies) {
  const auto f32 = memory::data_type::f32;
  const auto blocked = channels_last                ? memory::format_tag::nhwc
                       : kit::kernels::kBlock == 16 ? memory::format_tag::nChw16c
                                                    : memory::format_tag::nChw8c;
  const memory::dims kernel{layer.out_channels, layer.in_channels, layer.kernel, layer.kernel};
  const memory::dims places{layer.batch, layer.out_channels, layer.out_height(), layer.out_width()};
  const memory::desc from({layer.batch, layer.in_channels, layer.height, layer.width}, f32,
                          layer.in_channels < 4 && !channels_last ? memory::format_tag::nchw : blocked);
  const memory::desc any(kernel, f32, memory::format_tag::any), plain(kernel, f32, memory::format_tag::oihw);
  const memory::desc shift({layer.out_channels}, f32, memory::format_tag::a), to(places, f32, blocked);
  dnnl::post_ops posts;
  if (residual) posts.append_binary(dnnl::algorithm::binary_add, to);
  posts.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(posts);
  const dnnl::convolution_forward::primitive_desc description(
      engine_, dnnl::prop_kind::forward_inference, algorithm, from, any, shift, to, {layer.stride, layer.stride},
      {layer.padding, layer.padding}, {layer.padding, layer.padding}, attributes);
  kernel_ = description.impl_info_str();
  primitive_ = dnnl::convolution_forward(description);
  std::unordered_map<int, memory> others{{DNNL_ARG_SRC, memory(from, engine_, source)},
                                         {DNNL_ARG_BIAS, memory(shift, engine_, bias)},
                                         {DNNL_ARG_DST, memory(to, engine_, destination)}};
  if (residual) others.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, memory(to, engine_, residual));
  keep(description.weights_desc(), memory(plain, engine_, const_cast<float*>(weights)), others, copies);
}

OneDnnConvolution OneDnnConvolution::linear(const Layer& layer, float* source, const float* weights, float* bias,
                                            float* destination, int copies) {
  OneDnnConvolution out;
  const auto f32 = memory::data_type::f32;
  const memory::dims sizes{layer.out_channels, layer.in_channels};
  const memory::desc from({layer.batch, layer.in_channels}, f32, memory::format_tag::ab);
  const memory::desc any(sizes, f32, memory::format_tag::any), plain(sizes, f32, memory::format_tag::ab);
  const memory::desc shift({layer.out_channels}, f32, memory::format_tag::a);
  const memory::desc to({layer.batch, layer.out_channels}, f32, memory::format_tag::ab);
  dnnl::post_ops posts;
  posts.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(posts);
  const dnnl::inner_product_forward::primitive_desc description(out.engine_, dnnl::prop_kind::forward_inference, from,
                                                                any, shift, to, attributes);
  out.kernel_ = description.impl_info_str();
  out.primitive_ = dnnl::inner_product_forward(description);
  out.keep(description.weights_desc(), memory(plain, out.engine_, const_cast<float*>(weights)),
           {{DNNL_ARG_SRC, memory(from, out.engine_, source)},
            {DNNL_ARG_BIAS, memory(shift, out.engine_, bias)},
            {DNNL_ARG_DST, memory(to, out.engine_, destination)}},
           copies);
  return out;
}

void OneDnnConvolution::keep(const memory::desc& target, memory plain, const std::unordered_map<int, memory>& others,
                             int copies) {
  for (int i = 0; i < copies; ++i) {
    weights_.emplace_back(target, engine_);
    dnnl::reorder(plain, weights_.back()).execute(stream_, plain, weights_.back());
    arguments_.push_back(others);
    arguments_.back().emplace(DNNL_ARG_WEIGHTS, weights_.back());
  }
  stream_.wait();
}

void OneDnnConvolution::run(int iteration) {
  primitive_.execute(stream_, arguments_[iteration % arguments_.size()]);
  stream_.wait();
}

}  // namespace bench
