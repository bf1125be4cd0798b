// SPDX-License-Identifier: Apache-2.0
// What the forward pass of a convolution and its gradients share.
#pragma once

#include "kit/internals.hpp"
#include "kit/training.hpp"

namespace kit {

// The tensor as a call wants it: itself, or a copy in scratch memory.
inline memory read_as(Internals& in, const Tensor& tensor, const memory::desc& target) {
  const auto own = desc_of(tensor);
  if (own == target) return in.handle(tensor, own);
  const memory copy = in.handle(in.temporary_bytes(target.get_size()), target);
  in.add_reorder(in.handle(tensor, own), copy);
  return copy;
}

// `how.gradient` says in which type the convolution was computed.
template <class How>
dnnl::convolution_forward::primitive_desc forward_of(Internals& in, const How& how, const memory::desc& source,
                                                     const memory::dims& weight, const memory::desc& result) {
  return {in.engine,
          dnnl::prop_kind::forward_training,
          dnnl::algorithm::convolution_direct,
          source,
          any(weight, how.gradient.type),
          result,
          dims_of(how.stride),
          counted_from_zero(how.dilation),
          dims_of(how.before),
          dims_of(how.after),
          plain_attributes()};
}

// The call for the gradient of a convolution's weight, in the layouts that source and gradient have, unless the library
// is slow at these.
dnnl::convolution_backward_weights::primitive_desc gradient_of_weight(Internals& in,
                                                                      const ConvolutionBackwardWeights& how,
                                                                      const memory::dims& dims,
                                                                      const memory::desc& bias);

}  // namespace kit
