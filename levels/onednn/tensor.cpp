// SPDX-License-Identifier: Apache-2.0
#include "tensor.hpp"

#include <algorithm>
#include <numeric>

namespace strata::onednn {
namespace {

Dims row_major_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<std::int64_t>(dims[i], 1);
  return strides;
}

}  // namespace

memory::desc row_major(Dims dims, memory::data_type type) {
  if (dims.empty()) dims = {1};
  if (dims.size() > DNNL_MAX_NDIMS) throw Unsupported("a tensor of more than 12 dimensions");
  return {dims, type, row_major_strides(dims)};
}

bool is_strided(const memory::desc& desc) {
  return desc.get_format_kind() == memory::format_kind::blocked && desc.get_inner_nblks() == 0 && !is_padded(desc);
}

bool is_row_major(const memory::desc& desc) {
  if (!is_strided(desc)) return false;
  const Dims dims = desc.get_dims(), strides = desc.get_strides(), dense = row_major_strides(dims);
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] > 1 && strides[i] != dense[i]) return false;
  return true;
}

bool is_padded(const memory::desc& desc) {
  return desc.get_padded_dims() != desc.get_dims();
}

bool is_dense(const memory::desc& desc) {
  const auto bytes =
      static_cast<std::size_t>(product(desc.get_padded_dims())) * memory::data_type_size(desc.get_data_type());
  return desc.get_format_kind() == memory::format_kind::blocked && desc.get_size() == bytes;
}

std::string layout_name(const memory::desc& desc) {
  if (desc.get_format_kind() != memory::format_kind::blocked) return "opaque";
  const Dims strides = desc.get_strides(), blocks = desc.get_inner_blks(), of = desc.get_inner_idxs();
  std::vector<std::size_t> order(static_cast<std::size_t>(desc.get_ndims()));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return strides[a] > strides[b]; });
  std::string name;
  for (const auto i : order) {
    const bool blocked = std::find(of.begin(), of.end(), static_cast<std::int64_t>(i)) != of.end();
    name += static_cast<char>((blocked ? 'A' : 'a') + static_cast<char>(i));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) name += std::to_string(blocks[i]) + static_cast<char>('a' + of[i]);
  return name;
}

memory::desc with_rank(const memory::desc& desc, std::size_t rank) {
  Dims dims = desc.get_dims(), strides = desc.get_strides();
  if (dims.size() >= rank) return desc;
  const auto whole = dims[0] * strides[0];
  const auto missing = rank - dims.size();
  dims.insert(dims.begin(), missing, 1);
  strides.insert(strides.begin(), missing, whole);
  return {dims, desc.get_data_type(), strides};
}

Tensor permuted(const Tensor& tensor, const std::vector<std::size_t>& order) {
  Tensor view = tensor;
  if (!is_strided(tensor.desc)) {
    std::vector<int> to(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) to[order[i]] = static_cast<int>(i);
    view.desc = tensor.desc.permute_axes(to);
    return view;
  }
  const Dims dims = tensor.dims(), strides = tensor.desc.get_strides();
  Dims new_dims, new_strides;
  for (const auto i : order) {
    new_dims.push_back(dims[i]);
    new_strides.push_back(strides[i]);
  }
  view.desc = memory::desc(new_dims, tensor.desc.get_data_type(), new_strides);
  return view;
}

Tensor part_of(const Tensor& tensor, std::size_t dim, std::int64_t begin, std::int64_t length, std::int64_t step) {
  Tensor view = tensor;
  Dims dims = tensor.dims(), strides = tensor.desc.get_strides();
  const auto type = tensor.desc.get_data_type();
  view.offset += static_cast<std::size_t>(begin * strides[dim]) * memory::data_type_size(type);
  dims[dim] = length;
  strides[dim] *= step;
  view.desc = memory::desc(dims, type, strides);
  return view;
}

Tensor without(const Tensor& tensor, std::size_t dim) {
  Dims dims = tensor.dims(), strides = tensor.desc.get_strides();
  if (dims.size() == 1) return tensor;
  Tensor view = tensor;
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(dim));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(dim));
  view.desc = memory::desc(dims, tensor.desc.get_data_type(), strides);
  return view;
}

}  // namespace strata::onednn
