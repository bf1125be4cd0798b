// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace strata::onednn {

Call::Call(dnnl::primitive primitive, dnnl::stream stream, std::vector<std::pair<int, memory>> arguments,
           primitives::Description description)
    : primitive_(std::move(primitive)),
      stream_(std::move(stream)),
      held_(std::move(arguments)),
      description_(std::move(description)) {
  for (const auto& [which, handle] : held_) arguments_.push_back({which, handle.get()});
}

void Call::execute() {
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data()),
      "oneDNN could not execute a primitive");
}

Copy::Copy(memory from, memory to, primitives::Description description)
    : from_(std::move(from)),
      to_(std::move(to)),
      dims_(from_.get_desc().get_dims()),
      strides_(from_.get_desc().get_strides()),
      description_(std::move(description)) {}

void Copy::execute() {
  const auto* source = static_cast<const std::uint32_t*>(from_.get_data_handle());
  auto* target = static_cast<std::uint32_t*>(to_.get_data_handle());
  const std::int64_t inner = dims_.back(), step = strides_.back();
  const std::int64_t rows = inner == 0 ? 0 : product(dims_) / inner;
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t rest = row, at = 0;
    for (std::size_t d = dims_.size() - 1; d-- > 0;) {
      at += rest % dims_[d] * strides_[d];
      rest /= dims_[d];
    }
    auto* out = target + row * inner;
    if (step == 1)
      std::memcpy(out, source + at, static_cast<std::size_t>(inner) * sizeof(std::uint32_t));
    else
      for (std::int64_t i = 0; i < inner; ++i) out[i] = source[at + i * step];
  }
}

Rows::Rows(const memory& table, memory numbers) : numbers_(std::move(numbers)) {
  const Dims dims = table.get_desc().get_dims();
  height_ = dims.front();
  width_ = product(dims) / std::max<std::int64_t>(height_, 1);
  count_ = product(numbers_.get_desc().get_dims()) / 2;  // as pairs of s32
}

std::int64_t Rows::first_of(std::int64_t i) const {
  const auto* numbers = static_cast<const std::byte*>(numbers_.get_data_handle());
  std::int64_t row = 0;
  std::memcpy(&row, numbers + static_cast<std::size_t>(i) * sizeof row, sizeof row);
  if (row < 0) row += height_;
  if (row < 0 || row >= height_)
    throw std::out_of_range(fmt::format("a lookup of row {} in a table of {}", row, height_));
  return row * width_;
}

}  // namespace strata::onednn
