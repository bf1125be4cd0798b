// SPDX-License-Identifier: Apache-2.0
// Means, sums, maxima and Euclidean norms over dimensions, by kernels of strata's in any layout.
#include "kit_cuda/kernels/reduction.hpp"

#include "operations.hpp"

namespace strata::cudnn {
namespace {

template <kit_cuda::Reduction how>
void reduce(Builder& b) {
  const Tensor x = b.tensor("self");
  Dims dims = x.dims();
  for (const auto i : b.reduced_dimensions(dims.size())) dims[i] = 1;
  const Tensor to = b.result(row_major(dims));
  b.own([=](kit_cuda::Stream stream) { kit_cuda::reduce(stream, x.source(), how, to.target()); }, x.view, to.view);
}

void norm(Builder& b) {
  if (b.number("ord") != 2) throw Unsupported("a norm that is not Euclidean");
  reduce<kit_cuda::Reduction::norm>(b);
}

}  // namespace

void add_reductions(Operations& table) {
  table["mean"] = reduce<kit_cuda::Reduction::mean>;
  table["sum"] = reduce<kit_cuda::Reduction::sum>;
  table["amax"] = reduce<kit_cuda::Reduction::largest>;
  table["linalg_vector_norm"] = norm;
}

}  // namespace strata::cudnn
