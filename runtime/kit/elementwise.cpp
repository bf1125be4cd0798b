// SPDX-License-Identifier: Apache-2.0
// Operations on each element: functions, sums and products, scale and shift by channel.
#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "kit/one_pixel.hpp"
#include "kit/post_ops.hpp"

namespace kit {
namespace {

using dnnl::algorithm;

// Extents and strides as the bytes lie: blocks of channels are a dimension of their own, the last one. A stride is 0
// where the tensor is broadcast.
struct Physical {
  std::vector<Extent> extents, strides;
};

Physical physical(const memory::desc& desc) {
  Physical result{desc.get_padded_dims(), desc.get_strides()};
  if (desc.get_inner_nblks() == 1) {
    const auto block = desc.get_inner_blks()[0];
    result.extents.at(static_cast<std::size_t>(desc.get_inner_idxs()[0])) /= block;
    result.extents.push_back(block);
    result.strides.push_back(1);
  }
  return result;
}

// left and right, broadcast, for where oneDNN has only its slow kernel.
struct Broadcast {
  algorithm how;
  memory left, right, result;
  Physical of_left, of_right;

  static float combined(algorithm how, float x, float y) {
    switch (how) {
      case algorithm::binary_add:
        return x + y;
      case algorithm::binary_sub:
        return x - y;
      case algorithm::binary_mul:
        return x * y;
      default:
        return x / y;
    }
  }

  void operator()() const {
    const auto* x = static_cast<const float*>(left.get_data_handle());
    const auto* y = static_cast<const float*>(right.get_data_handle());
    auto* z = static_cast<float*>(result.get_data_handle());
    const auto rank = of_left.extents.size();
    const Extent inner = of_left.extents.back(), x_step = of_left.strides.back(), y_step = of_right.strides.back();
    Extent rows = 1;
    for (std::size_t d = 0; d + 1 < rank; ++d) rows *= of_left.extents[d];
#pragma omp parallel for schedule(static)
    for (Extent row = 0; row < rows; ++row) {
      Extent rest = row, at = 0, from = 0;
      for (std::size_t d = rank - 1; d-- > 0;) {
        at += rest % of_left.extents[d] * of_left.strides[d];
        from += rest % of_left.extents[d] * of_right.strides[d];
        rest /= of_left.extents[d];
      }
      for (Extent i = 0; i < inner; ++i) z[at + i * x_step] = combined(how, x[at + i * x_step], y[from + i * y_step]);
    }
  }
};

// `tensor` with ones in front up to `rank`.
Tensor of_rank(const Tensor& tensor, int rank) {
  if (tensor.shape.rank >= rank) return tensor;
  Shape shape;
  for (int i = tensor.shape.rank; i < rank; ++i) shape[shape.rank++] = 1;
  for (const Extent extent : tensor.shape) shape[shape.rank++] = extent;
  return tensor.as(shape);
}

bool same_shape(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void add_broadcast(Internals& in, algorithm how, const Tensor& left, const Tensor& right, const Tensor& result) {
  Broadcast broadcast{how,
                      in.handle(left, desc_of(left)),
                      in.handle(right, desc_of(right)),
                      in.handle(result, desc_of(result)),
                      physical(desc_of(left)),
                      physical(desc_of(right))};
  for (std::size_t d = 0; d < broadcast.of_left.extents.size(); ++d)
    if (broadcast.of_right.extents[d] != broadcast.of_left.extents[d]) broadcast.of_right.strides[d] = 0;
  // of one channel in blocks only the first place of the block holds it
  if (right.layout != Layout::plain && right.layout != Layout::channels_last && right.shape[1] == 1 &&
      left.shape[1] != 1)
    broadcast.of_right.strides.back() = 0;
  in.add_own(std::move(broadcast), false, "kit:broadcast");
}

void combine(Program& program, algorithm how, const Combine& operands);

// Post-ops as calls of their own, within `computed` and at last into the result.
void then_one_by_one(Program& program, const Tensor& computed, const PostOps& posts, const Tensor& result) {
  for (std::size_t i = 0; i < posts.size(); ++i) {
    const PostOp& post = posts[i];
    const Tensor& to = i + 1 == posts.size() ? result : computed;
    if (post.kind == PostOp::Kind::function)
      apply(program, {computed, post.function, to});
    else
      combine(program, post.kind == PostOp::Kind::add ? algorithm::binary_add : algorithm::binary_mul,
              {computed, post.with, to});
  }
}

void combine(Program& program, algorithm how, const Combine& operands) {
  Internals& in = program.internals();
  const int rank = operands.result.shape.rank;
  Tensor left = of_rank(operands.left, rank), right = of_rank(operands.right, rank);
  if (operands.factor != 1) {
    const Tensor scaled = in.temporary(right.shape, right.layout, right.type);
    apply(program, {right, line(operands.factor, 0), scaled});
    right = scaled;
  }
  const bool commutes = how == algorithm::binary_add || how == algorithm::binary_mul;
  if (!same_shape(left.shape, operands.result.shape) && commutes) std::swap(left, right);
  if (!same_shape(left.shape, operands.result.shape)) {
    if (left.layout != Layout::plain) {
      const Tensor plain = in.temporary(left.shape, Layout::plain, left.type);
      reorder(program, {left, plain});
      left = plain;
    }
    const Tensor whole = in.temporary(operands.result.shape, Layout::plain, left.type);
    expand(program, {left, whole});
    left = whole;
  }
  for (Tensor* tensor : {&left, &right})
    if (tensor->layout != operands.result.layout) {
      const Tensor same = in.temporary(tensor->shape, operands.result.layout, tensor->type);
      reorder(program, {*tensor, same});
      *tensor = same;
    }
  const PostOpsAttr posted(in, operands.then, operands.result);
  const dnnl::binary::primitive_desc pd(in.engine, how, desc_of(left), desc_of(right), desc_of(operands.result),
                                        posted.attributes);
  const bool is_float32 =
      left.type == Type::float32 && right.type == Type::float32 && operands.result.type == Type::float32;
  // the own loop takes padding along, where a quotient is 0 / 0 and a convolution reads it
  const auto desc = desc_of(operands.result);
  const bool may_take_padding = how != algorithm::binary_div || desc.get_padded_dims() == desc.get_dims();
  if (is_float32 && may_take_padding && is_reference(pd.impl_info_str())) {
    Tensor computed =
        operands.then.empty() ? operands.result : in.temporary(operands.result.shape, operands.result.layout);
    add_broadcast(in, how, left, right, computed);
    return then_one_by_one(program, computed, operands.then, operands.result);
  }
  auto arguments = posted.arguments;
  arguments.emplace_back(DNNL_ARG_SRC_0, in.handle(left, pd.src0_desc()));
  arguments.emplace_back(DNNL_ARG_SRC_1, in.handle(right, pd.src1_desc()));
  arguments.emplace_back(DNNL_ARG_DST, in.handle(operands.result, pd.dst_desc()));
  in.add(dnnl::binary(pd), pd, std::move(arguments));
}

// An image of one pixel whose bytes are those of a matrix.
bool lies_as_rows(const Tensor& image) {
  return image.shape.rank > 2 && image.shape.elements() == image.shape[0] * image.shape[1] &&
         (image.layout == Layout::plain || image.layout == Layout::channels_last);
}

// To images of one pixel oneDNN 3.2 adds the first channel's shift for all channels; to rows it does not.
ScaleShift of_rows(ScaleShift how) {
  how.source = as_rows(how.source);
  how.result = as_rows(how.result);
  for (PostOp& post : how.then)
    if (post.kind != PostOp::Kind::function) post.with = as_rows(post.with);
  return how;
}

}  // namespace

void add(Program& program, const Combine& how) {
  combine(program, algorithm::binary_add, how);
}
void subtract(Program& program, const Combine& how) {
  combine(program, algorithm::binary_sub, how);
}
void multiply(Program& program, const Combine& how) {
  combine(program, algorithm::binary_mul, how);
}
void divide(Program& program, const Combine& how) {
  combine(program, algorithm::binary_div, how);
}

void apply(Program& program, const Apply& how) {
  Internals& in = program.internals();
  const PostOpsAttr posted(in, how.then, how.result, false);
  const dnnl::eltwise_forward::primitive_desc pd(in.engine, dnnl::prop_kind::forward_inference,
                                                 algorithm_of(how.function), desc_of(how.source), desc_of(how.result),
                                                 how.function.alpha, how.function.beta, posted.attributes);
  auto arguments = posted.arguments;
  arguments.emplace_back(DNNL_ARG_SRC, in.handle(how.source, pd.src_desc()));
  arguments.emplace_back(DNNL_ARG_DST, in.handle(how.result, pd.dst_desc()));
  in.add(dnnl::eltwise_forward(pd), pd, std::move(arguments));
}

// A product with a post: the sum with the shift, before all others.
void scale_shift(Program& program, const ScaleShift& how) {
  if (lies_as_rows(how.source) && lies_as_rows(how.result)) return scale_shift(program, of_rows(how));
  Internals& in = program.internals();
  Shape shape;
  for (int i = 0; i < how.source.shape.rank; ++i) shape[shape.rank++] = i == 1 ? how.source.shape[1] : 1;
  const auto plain_desc = row_major(dims_of(shape));
  const auto desc = desc_of({Region::weights, 0, shape, how.source.layout});
  dnnl::post_ops posts;
  posts.append_binary(algorithm::binary_add, desc);
  std::vector<std::pair<int, memory>> arguments{
      {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, in.packed(how.shift, plain_desc, desc)}};
  for (const PostOp& post : how.then) {
    if (post.kind == PostOp::Kind::function) {
      posts.append_eltwise(algorithm_of(post.function), post.function.alpha, post.function.beta);
      continue;
    }
    const auto with = desc_of(post.with);
    arguments.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(posts.len()) | DNNL_ARG_SRC_1, in.handle(post.with, with));
    posts.append_binary(post.kind == PostOp::Kind::add ? algorithm::binary_add : algorithm::binary_mul, with);
  }
  auto attributes = plain_attributes();
  attributes.set_post_ops(posts);
  const dnnl::binary::primitive_desc pd(in.engine, algorithm::binary_mul, desc_of(how.source), desc,
                                        desc_of(how.result), attributes);
  arguments.emplace_back(DNNL_ARG_SRC_0, in.handle(how.source, pd.src0_desc()));
  arguments.emplace_back(DNNL_ARG_SRC_1, in.packed(how.scale, plain_desc, desc));
  arguments.emplace_back(DNNL_ARG_DST, in.handle(how.result, pd.dst_desc()));
  in.add(dnnl::binary(pd), pd, std::move(arguments));
}

}  // namespace kit
