// SPDX-License-Identifier: Apache-2.0
// Sums, differences, products and quotients of two tensors (one may be broadcast), or of a tensor and a number.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "operations.hpp"

namespace strata::onednn {
namespace {

using dnnl::algorithm;

// The same elements with ones in front up to `rank`.
Tensor of_rank(Builder& b, const Tensor& tensor, std::size_t rank) {
  Dims dims = tensor.dims();
  if (dims.size() < rank) dims.insert(dims.begin(), rank - dims.size(), 1);
  return b.reshaped(tensor, dims);
}

// Written out to `dims`, along which it is broadcast.
Tensor broadcast(Builder& b, const Tensor& tensor, const Dims& dims) {
  if (tensor.dims() == dims) return tensor;
  Tensor view = b.strided(tensor);
  Dims strides = view.desc.get_strides();
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (view.dims()[i] != dims[i]) strides[i] = 0;
  view.desc = memory::desc(dims, memory::data_type::f32, strides);
  return b.written_out(view);
}

// Channels in the same blocks as those of `like`, for another shape; nullopt: `like` has no such blocks.
std::optional<memory::desc> blocked_like(const memory::desc& like, const Dims& dims) {
  using tag = memory::format_tag;
  if (like.get_inner_nblks() != 1 || like.get_inner_idxs()[0] != 1 || dims.size() < 3 || dims.size() > 5)
    return std::nullopt;
  const auto block = like.get_inner_blks()[0];
  if (block != 8 && block != 16) return std::nullopt;
  constexpr std::array<tag, 3> eights{tag::aBc8b, tag::aBcd8b, tag::aBcde8b};
  constexpr std::array<tag, 3> sixteens{tag::aBc16b, tag::aBcd16b, tag::aBcde16b};
  return memory::desc(dims, memory::data_type::f32, (block == 8 ? eights : sixteens)[dims.size() - 3]);
}

dnnl::binary::primitive_desc describe(Builder& b, algorithm how, const memory::desc& x, const memory::desc& y) {
  return {b.engine(), how, x, y, x, Builder::attr()};
}

// A broadcast operand in the first layout that oneDNN has a fast kernel for beside `x`: as it lies, row-major, in
// blocks like those of `x`, written out. Its reference kernel takes any, some fifty times as long.
Tensor readable_beside(Builder& b, algorithm how, const Tensor& x, const Tensor& y) {
  const Dims dims = y.dims();
  std::vector<memory::desc> layouts{row_major(dims)};
  if (is_dense(y.desc)) layouts.insert(layouts.begin(), y.desc);
  if (const auto blocked = blocked_like(x.desc, dims)) layouts.push_back(*blocked);
  const auto is_fast = [&](const memory::desc& layout) {
    return !std::string_view(describe(b, how, x.desc, layout).impl_info_str()).starts_with("ref");
  };
  const auto fast = std::find_if(layouts.begin(), layouts.end(), is_fast);
  if (fast != layouts.end()) return b.in(y, *fast);
  const Tensor whole = broadcast(b, y, x.dims());
  return b.in(whole, x.desc);
}

void combine(Builder& b, algorithm how, Tensor x, Tensor y) {
  const Dims dims = b.shape();
  x = of_rank(b, x, dims.size());
  y = of_rank(b, y, dims.size());
  const bool commutes = how == algorithm::binary_add || how == algorithm::binary_mul;
  if (commutes && x.dims() != dims) std::swap(x, y);
  x = broadcast(b, x, dims);
  const bool alike = y.dims() == dims;
  // two layouts meet: the blocked one stays
  if (alike && commutes && is_strided(x.desc) && !is_strided(y.desc)) std::swap(x, y);
  x = b.dense(x);
  y = alike ? b.in(y, x.desc) : readable_beside(b, how, x, y);
  const auto pd = describe(b, how, x.desc, y.desc);
  b.call<dnnl::binary>(pd, {{DNNL_ARG_SRC_0, x}, {DNNL_ARG_SRC_1, y}, {DNNL_ARG_DST, b.result_of(pd)}});
}

// alpha x + beta as the node's result.
void along_line(Builder& b, const Tensor& operand, double alpha, double beta) {
  const Tensor x = b.dense(operand);
  const dnnl::eltwise_forward::primitive_desc pd(b.engine(), dnnl::prop_kind::forward_inference,
                                                 algorithm::eltwise_linear, x.desc, x.desc, static_cast<float>(alpha),
                                                 static_cast<float>(beta), Builder::attr());
  b.call<dnnl::eltwise_forward>(pd, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, b.result_of(pd)}});
}

double alpha_of(Builder& b) {
  return b.has("alpha") ? b.number("alpha") : 1;
}

void add_or_subtract(Builder& b, double sign) {
  const Tensor x = b.tensor("self");
  const double alpha = alpha_of(b);
  if (!b.is_tensor("other")) return along_line(b, x, 1, sign * alpha * b.number("other"));
  Tensor y = b.tensor("other");
  if (alpha != 1) y = applied(b, algorithm::eltwise_linear, y, static_cast<float>(alpha));
  combine(b, sign > 0 ? algorithm::binary_add : algorithm::binary_sub, x, y);
}

void add(Builder& b) {
  add_or_subtract(b, 1);
}
void subtract(Builder& b) {
  add_or_subtract(b, -1);
}

void subtract_from(Builder& b) {
  if (b.is_tensor("other") || alpha_of(b) != 1) throw Unsupported("rsub of two tensors, or with a factor");
  along_line(b, b.tensor("self"), -1, b.number("other"));
}

void negate(Builder& b) {
  along_line(b, b.tensor("self"), -1, 0);
}

void multiply_by(Builder& b) {
  if (!b.is_tensor("other")) return along_line(b, b.tensor("self"), b.number("other"), 0);
  combine(b, algorithm::binary_mul, b.tensor("self"), b.tensor("other"));
}

void divide(Builder& b) {
  if (!b.text("rounding_mode").empty()) throw Unsupported("div with rounding");
  if (!b.is_tensor("other")) return along_line(b, b.tensor("self"), 1 / b.number("other"), 0);
  combine(b, algorithm::binary_div, b.tensor("self"), b.tensor("other"));
}

// Of tensors that may lie as they like, along a dimension. oneDNN 3.2 joins into blocks if one of them has blocks, and
// then reads one with gaps (half of the channels of another) as if it had none.
void join(Builder& b, std::vector<Tensor> parts, std::size_t axis) {
  const bool blocks =
      std::any_of(parts.begin(), parts.end(), [](const Tensor& part) { return !is_strided(part.desc); });
  std::vector<memory::desc> descs;
  for (auto& part : parts) {
    if (part.elsewhere() || (blocks && !is_dense(part.desc))) part = b.plain(part);
    descs.push_back(part.desc);
  }
  const dnnl::concat::primitive_desc pd(b.engine(), static_cast<int>(axis), descs, Builder::attr());
  std::vector<std::pair<int, Tensor>> arguments;
  for (std::size_t i = 0; i < parts.size(); ++i)
    arguments.emplace_back(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), parts[i]);
  arguments.emplace_back(DNNL_ARG_DST, b.result_of(pd));
  b.add(dnnl::concat(pd), pd, std::move(arguments));
}

void concatenate(Builder& b) {
  auto parts = b.tensors("tensors");
  const auto axis = b.dimension("dim", parts.front().dims().size());
  join(b, std::move(parts), axis);
}

void stack(Builder& b) {
  auto parts = b.tensors("tensors");
  Dims dims = b.shape();
  const auto axis = b.dimension("dim", dims.size());
  dims[axis] = 1;
  for (auto& part : parts) part = b.reshaped(part, dims);
  join(b, std::move(parts), axis);
}

}  // namespace

void add_arithmetic(Operations& table) {
  table["add"] = add;
  table["sub"] = subtract;
  table["rsub"] = subtract_from;
  table["mul"] = multiply_by;
  table["neg"] = negate;
  table["div"] = divide;
  table["cat"] = concatenate;
  table["stack"] = stack;
}

}  // namespace strata::onednn
