// SPDX-License-Identifier: Apache-2.0
// Linear layers (inner product, with the bias that the call takes itself) and matrix products.
#include <algorithm>

#include "operations.hpp"

namespace strata::onednn {
namespace {

void linear(Builder& b) {
  const Tensor input = b.tensor("input");
  const Dims weight = b.tensor("weight").dims();
  if (weight.size() != 2) throw Unsupported("a linear layer whose weight is no matrix");
  const auto rows = weight[1] == 0 ? 0 : product(input.dims()) / weight[1];
  const Tensor source = b.reshaped(input, {rows, weight[1]});
  const auto bias = b.optional("bias");
  const auto any = [](const Dims& of) { return memory::desc(of, memory::data_type::f32, memory::format_tag::any); };
  // in training three products read the weight, so that one of them could have it in blocks only by reorders
  const auto of_weight = b.tensor("weight").trained ? row_major(weight) : any(weight);
  // the result is row-major, since it is to be read with more dimensions again
  const dnnl::inner_product_forward::primitive_desc pd(
      b.engine(), dnnl::prop_kind::forward_inference, any({rows, weight[1]}), of_weight,
      bias ? row_major(bias->dims()) : memory::desc(), row_major({rows, weight[0]}), Builder::attr());
  std::vector<std::pair<int, Tensor>> arguments{{DNNL_ARG_SRC, b.in(source, pd.src_desc())},
                                                {DNNL_ARG_WEIGHTS, b.in(b.tensor("weight"), pd.weights_desc())}};
  if (bias) arguments.emplace_back(DNNL_ARG_BIAS, b.plain(*bias));
  arguments.emplace_back(DNNL_ARG_DST, b.result_of(pd));
  b.add(dnnl::inner_product_forward(pd), pd, std::move(arguments));
}

// As it lies if the call can read it (one of the last two dimensions is contiguous), else row-major.
Tensor readable(Builder& b, const Tensor& tensor) {
  const Tensor x = b.strided(tensor);
  if (!is_strided(x.desc)) return b.plain(x);
  const Dims strides = x.desc.get_strides();
  const auto rank = strides.size();
  const bool any_zero = std::find(strides.begin(), strides.end(), 0) != strides.end();
  const bool fits = !any_zero && (strides[rank - 1] == 1 || strides[rank - 2] == 1);
  return fits ? b.in(x, x.desc) : b.plain(x);
}

void matmul(Builder& b) {
  Tensor x = b.tensor(b.has("self") ? "self" : "input");
  Tensor y = b.tensor(b.has("mat2") ? "mat2" : "other");
  Dims of_x = x.dims(), of_y = y.dims();
  if (of_x.size() == 1) of_x.insert(of_x.begin(), 1);
  if (of_y.size() == 1) of_y.push_back(1);
  x = b.reshaped(x, of_x);
  y = b.reshaped(y, of_y);
  const auto rank = std::max(of_x.size(), of_y.size());
  x = b.strided(x);
  y = b.strided(y);
  x.desc = with_rank(x.desc, rank);
  y.desc = with_rank(y.desc, rank);
  multiply(b, x, y, true);
}

}  // namespace

Tensor multiply(Builder& b, const Tensor& x, const Tensor& y, bool into_result) {
  const Tensor left = readable(b, x), right = readable(b, y);
  Dims dims = left.dims();
  dims.back() = right.dims().back();
  for (std::size_t i = 0; i + 2 < dims.size(); ++i) dims[i] = std::max(dims[i], right.dims()[i]);
  const dnnl::matmul::primitive_desc pd(b.engine(), left.desc, right.desc, row_major(dims), Builder::attr());
  const Tensor to = into_result ? b.result_of(pd) : b.temporary(pd.dst_desc());
  b.call<dnnl::matmul>(pd, {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, to}});
  return to;
}

void add_products(Operations& table) {
  table["linear"] = linear;
  table["matmul"] = table["mm"] = table["bmm"] = matmul;
}

}  // namespace strata::onednn
