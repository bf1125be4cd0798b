// SPDX-License-Identifier: Apache-2.0
#include "kit/post_ops.hpp"

#include <stdexcept>

namespace kit {

dnnl::algorithm algorithm_of(const Function& function) {
  using Kind = Function::Kind;
  using dnnl::algorithm;
  switch (function.kind) {
    case Kind::relu:
      return algorithm::eltwise_relu;
    case Kind::clip:
      return algorithm::eltwise_clip;
    case Kind::hardswish:
      return algorithm::eltwise_hardswish;
    case Kind::hardsigmoid:
      return algorithm::eltwise_hardsigmoid;
    case Kind::swish:
      return algorithm::eltwise_swish;
    case Kind::logistic:
      return algorithm::eltwise_logistic;
    case Kind::tanh:
      return algorithm::eltwise_tanh;
    case Kind::elu:
      return algorithm::eltwise_elu;
    case Kind::gelu_erf:
      return algorithm::eltwise_gelu_erf;
    case Kind::gelu_tanh:
      return algorithm::eltwise_gelu_tanh;
    case Kind::exp:
      return algorithm::eltwise_exp;
    case Kind::sqrt:
      return algorithm::eltwise_sqrt;
    case Kind::abs:
      return algorithm::eltwise_abs;
    case Kind::square:
      return algorithm::eltwise_square;
    case Kind::linear:
      return algorithm::eltwise_linear;
  }
  throw std::logic_error("an unknown function");
}

PostOpsAttr::PostOpsAttr(Internals& in, const PostOps& posts, const Tensor& result, bool accumulates) {
  dnnl::post_ops all;
  for (const PostOp& post : posts) {
    if (post.kind == PostOp::Kind::function) {
      all.append_eltwise(algorithm_of(post.function), post.function.alpha, post.function.beta);
      continue;
    }
    const bool in_place =
        accumulates && post.kind == PostOp::Kind::add && post.with.region == result.region && post.with.at == result.at;
    if (in_place) {
      all.append_sum(1);
      continue;
    }
    const auto how = post.kind == PostOp::Kind::add ? dnnl::algorithm::binary_add : dnnl::algorithm::binary_mul;
    const auto desc = desc_of(post.with);
    arguments.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(all.len()) | DNNL_ARG_SRC_1, in.handle(post.with, desc));
    all.append_binary(how, desc);
  }
  attributes.set_post_ops(all);
}

}  // namespace kit
