// SPDX-License-Identifier: Apache-2.0
// Means, sums and maxima over dimensions. A mean over all places of an image is the pooling call, which reads blocks.
#include <algorithm>

#include "operations.hpp"

namespace strata::onednn {
namespace {

using dnnl::algorithm;

// Output 0 is this tensor without its reduced dimensions.
Tensor squeezed(Builder& b, const Tensor& tensor) {
  return b.reshaped(tensor, b.shape());
}

void mean_of_places(Builder& b, const Tensor& image) {
  const Tensor x = b.dense(image);
  Dims dims = x.dims();
  const Dims kernel(dims.begin() + 2, dims.end()), none(kernel.size(), 0);
  std::fill(dims.begin() + 2, dims.end(), 1);
  const memory::desc any(dims, memory::data_type::f32, memory::format_tag::any);
  const dnnl::pooling_forward::primitive_desc pd(b.engine(), dnnl::prop_kind::forward_inference,
                                                 algorithm::pooling_avg_exclude_padding, x.desc, any, kernel, kernel,
                                                 none, none, none, Builder::attr());
  const Tensor to = b.temporary(pd.dst_desc());
  b.call<dnnl::pooling_forward>(pd, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, to}});
  b.is(squeezed(b, to));
}

// Over the dimensions of the node, which stay with one element each.
Tensor reduced_by(Builder& b, algorithm how, const Tensor& operand) {
  Dims dims = operand.dims();
  for (const auto i : b.reduced_dimensions(dims.size())) dims[i] = 1;
  const Tensor x = b.plain(operand);
  if (x.dims() == dims) return x;  // one element each: oneDNN refuses to reduce nothing
  const Tensor to = b.temporary(row_major(dims));
  const dnnl::reduction::primitive_desc pd(b.engine(), how, x.desc, to.desc, 0, 0, Builder::attr());
  b.call<dnnl::reduction>(pd, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, to}});
  return to;
}

template <algorithm how>
void reduce(Builder& b) {
  const Tensor operand = b.tensor("self");
  const auto over = b.reduced_dimensions(operand.dims().size());
  const bool of_image =
      (operand.dims().size() == 4 || operand.dims().size() == 5) && over.size() == operand.dims().size() - 2;
  if (how == algorithm::reduction_mean && of_image && over.front() == 2) return mean_of_places(b, operand);
  b.is(squeezed(b, reduced_by(b, how, operand)));
}

// Three calls, since oneDNN has but a reference kernel for norms.
void norm(Builder& b) {
  if (b.number("ord") != 2) throw Unsupported("a norm that is not Euclidean");
  const Tensor sum = reduced_by(b, algorithm::reduction_sum, applied(b, algorithm::eltwise_square, b.tensor("self")));
  b.is(squeezed(b, applied(b, algorithm::eltwise_sqrt, sum)));
}

}  // namespace

void add_reductions(Operations& table) {
  table["mean"] = reduce<algorithm::reduction_mean>;
  table["sum"] = reduce<algorithm::reduction_sum>;
  table["linalg_vector_norm"] = norm;
  table["amax"] = reduce<algorithm::reduction_max>;
  table["amin"] = reduce<algorithm::reduction_min>;
}

}  // namespace strata::onednn
