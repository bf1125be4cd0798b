// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions: oneDNN's deconvolution, whose weight has its first two dimensions the other way round.
#include "kit/convolution.hpp"

namespace kit {
namespace {

// PyTorch's weight [inputs, outputs / groups, ...] as the library reads it: outputs first, groups apart.
memory::desc turned(const Shape& weight, Extent groups) {
  memory::dims dims{groups, weight[0] / groups, weight[1]};
  for (int d = 2; d < weight.rank; ++d) dims.push_back(weight[d]);
  auto strides = row_major_strides(dims);
  std::swap(dims[1], dims[2]);
  std::swap(strides[1], strides[2]);
  if (groups == 1) {
    dims.erase(dims.begin());
    strides.erase(strides.begin());
  }
  return {dims, memory::data_type::f32, strides};
}

// A weight that training changes lies row-major: its gradients read and write it with its dimensions as they are.
memory turned_weight(Internals& in, Weight weight, const memory::desc& as_given, const memory::desc& wanted) {
  const auto& entry = in.weights[static_cast<std::size_t>(weight.number)];
  if (!entry.trained && !entry.changed) return in.packed(weight, as_given, wanted);
  const memory given = in.handle(in.row_major_form(weight), as_given);
  const memory packed = in.handle(in.temporary_bytes(wanted.get_size()), wanted);
  in.add_reorder(given, packed);
  return packed;
}

}  // namespace

void transposed_convolution(Program& program, const Convolution& how) {
  Internals& in = program.internals();
  const auto weight = turned(how.weight.shape, how.groups);
  const auto bias = how.bias ? row_major(dims_of(how.bias.shape)) : memory::desc();
  const auto described = [&](const memory::desc& source, const memory::desc& result) {
    return dnnl::deconvolution_forward::primitive_desc(
        in.engine, dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct, source,
        any(weight.get_dims()), bias, result, dims_of(how.stride), counted_from_zero(how.dilation), dims_of(how.before),
        dims_of(how.after), plain_attributes());
  };
  auto pd = described(desc_of(how.source), desc_of(how.result));
  if (is_reference(pd.impl_info_str())) pd = described(any(dims_of(how.source.shape)), any(dims_of(how.result.shape)));
  const memory result = in.handle(how.result, desc_of(how.result));
  const bool direct = pd.dst_desc() == result.get_desc();
  const memory destination = direct ? result : in.handle(in.temporary_bytes(pd.dst_desc().get_size()), pd.dst_desc());
  std::vector<std::pair<int, memory>> arguments{
      {DNNL_ARG_SRC, read_as(in, how.source, pd.src_desc())},
      {DNNL_ARG_WEIGHTS, turned_weight(in, how.weight, weight, pd.weights_desc())},
      {DNNL_ARG_DST, destination}};
  if (how.bias) arguments.emplace_back(DNNL_ARG_BIAS, in.packed(how.bias, bias, bias));
  in.add(dnnl::deconvolution_forward(pd), pd, std::move(arguments));
  if (!direct) in.add_reorder(destination, result);
}

}  // namespace kit
