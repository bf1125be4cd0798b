// SPDX-License-Identifier: Apache-2.0
#include "kit_cuda/post_ops.hpp"

#include <algorithm>

namespace kit {

std::optional<Fused> fused_of(const PostOps& posts, const Tensor& result) {
  Fused fused;
  for (const PostOp& post : posts) {
    const bool last = fused.then.clamps();
    if (post.kind == PostOp::Kind::add && !last && !fused.then.summand && same_shape(post.with.shape, result.shape)) {
      fused.then.summand = true;
      fused.summand = post.with;
    } else if (post.kind == PostOp::Kind::function && !last && post.function.kind == Function::Kind::relu &&
               post.function.alpha == 0) {
      fused.then.low = 0;
    } else if (post.kind == PostOp::Kind::function && !last && post.function.kind == Function::Kind::clip) {
      fused.then.low = post.function.alpha;
      fused.then.high = post.function.beta;
    } else {
      return std::nullopt;
    }
  }
  return fused;
}

device::Then then_of(const Internals& in, const PostOps& posts, std::size_t first) {
  device::Then then;
  for (auto i = first; i < posts.size() && then.count < device::Then::most; ++i) {
    const PostOp& post = posts[i];
    then.posts[then.count++] = post.kind == PostOp::Kind::function ? device::then_apply(post.function)
                               : post.kind == PostOp::Kind::add    ? device::then_add(in.source(post.with))
                                                                   : device::then_multiply(in.source(post.with));
  }
  return then;
}

void add_post_ops(Internals& in, const Tensor& result, const Tensor& bias, const PostOps& all, std::size_t first) {
  bool adds_bias = static_cast<bool>(bias);
  if (!adds_bias && first >= all.size()) return;
  PostOps posts = all;
  if (result.type == Type::bfloat16) {  // in float32, between two conversions
    for (PostOp& post : posts)
      if (post.with) post.with = in.as_float32(post.with);
    const Tensor wide = in.as_float32(result);
    add_post_ops(in, wide, bias, posts, first);
    return in.add_copy(wide, result);
  }
  while (adds_bias || first < posts.size()) {
    in.add("posts", [&in, result, bias = adds_bias ? bias : Tensor{}, posts, first](Stream on) {
      device::scale_shift(on, in.source(result), nullptr, in.floats(bias), in.target(result),
                          then_of(in, posts, first));
    });
    adds_bias = false;
    first += device::Then::most;
  }
}

}  // namespace kit
