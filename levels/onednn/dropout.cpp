// SPDX-License-Identifier: Apache-2.0
// Dropout: oneDNN draws no numbers, so these are strata's loops. Each element has a number of its own, a hash of its
// place and of the step (splitmix64: Steele, Lea and Flood 2014), so that threads need not share a generator.
#include <cstring>

#include "operations.hpp"

namespace strata::onednn {
namespace {

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// A product, so that no branch depends on what was drawn; of a NaN it is one, as in PyTorch.
float masked(float value, std::uint8_t keeps, float scale) {
  return value * (static_cast<float>(keeps) * scale);
}

void forward(Builder& b) {
  const double p = b.number("p");
  const Tensor x = b.dense(b.tensor("input"));
  b.dropout()->present = true;
  const auto count = static_cast<std::int64_t>(x.desc.get_size() / sizeof(float));
  const Tensor to = b.result(x.desc), mask = b.temporary(row_major({count}, memory::data_type::u8));
  b.leave(1, {.tensor = mask, .from = x.desc, .to = x.desc});
  const auto from = b.handle(x), into = b.handle(to), mask_memory = b.handle(mask);
  const auto layer = mixed(static_cast<std::uint64_t>(b.first_output()));
  const auto scale = p == 1 ? 0.0F : static_cast<float>(1 / (1 - p));
  const auto limit = static_cast<std::uint64_t>((1 - p) * 9007199254740992.0);  // 2^53
  b.own("a mask", [=, dropout = b.dropout()] {
    const auto* source = static_cast<const float*>(from.get_data_handle());
    auto* target = static_cast<float*>(into.get_data_handle());
    auto* keeps = static_cast<std::uint8_t*>(mask_memory.get_data_handle());
    if (!dropout->on) {
      std::memcpy(target, source, static_cast<std::size_t>(count) * sizeof(float));
      return;
    }
    const auto key = mixed(layer + ++dropout->draws);
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < count; ++i) {
      keeps[i] = static_cast<std::uint8_t>((mixed(key + static_cast<std::uint64_t>(i)) >> 11) < limit);
      target[i] = masked(source[i], keeps[i], scale);
    }
  });
}

void backward(Builder& b) {
  const auto& forward_call = b.left("mask");
  const Tensor gradient = b.in(b.tensor("grad_output"), forward_call.from);
  const auto count = static_cast<std::int64_t>(gradient.desc.get_size() / sizeof(float));
  const Tensor to = b.result(gradient.desc);
  const auto from = b.handle(gradient), into = b.handle(to), mask_memory = b.handle(forward_call.tensor);
  const auto scale = static_cast<float>(b.number("scale"));
  b.own("a mask", [=, dropout = b.dropout()] {
    const auto* source = static_cast<const float*>(from.get_data_handle());
    auto* target = static_cast<float*>(into.get_data_handle());
    const auto* keeps = static_cast<const std::uint8_t*>(mask_memory.get_data_handle());
    if (!dropout->on) {
      std::memcpy(target, source, static_cast<std::size_t>(count) * sizeof(float));
      return;
    }
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < count; ++i) target[i] = masked(source[i], keeps[i], scale);
  });
}

}  // namespace

void add_dropouts(Operations& table) {
  table["native_dropout"] = forward;
  table["native_dropout_backward"] = backward;
}

}  // namespace strata::onednn
