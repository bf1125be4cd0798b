// SPDX-License-Identifier: Apache-2.0
#include "statistics.hpp"

#include <algorithm>

namespace strata::onednn {
namespace {

constexpr std::int64_t most_lanes = 16, piece = 256;

// f(value, lane) summed over all pixels, for `lanes` channels next to each other.
template <int lanes, class F>
void sum_lanes(const ChannelOrder& order, const float* data, const F& f, double* total) {
  for (std::int64_t n = 0; n < order.images; ++n)
    for (std::int64_t first = 0; first < order.pixels; first += piece) {
      float sums[lanes] = {};
      const auto end = std::min(first + piece, order.pixels);
      const float* at = data + n * order.image_step + first * order.pixel_step;
      for (auto p = first; p < end; ++p, at += order.pixel_step)
        for (int lane = 0; lane < lanes; ++lane) sums[lane] += f(at[lane], lane);
      for (int lane = 0; lane < lanes; ++lane) total[lane] += static_cast<double>(sums[lane]);
    }
}

// The same of one channel whose pixels lie one behind the other.
template <class F>
void sum_row(const ChannelOrder& order, const float* data, const F& f, double* total) {
  for (std::int64_t n = 0; n < order.images; ++n)
    for (std::int64_t first = 0; first < order.pixels; first += piece) {
      float sum = 0;
      const auto end = std::min(first + piece, order.pixels);
      const float* at = data + n * order.image_step;
#pragma omp simd reduction(+ : sum)
      for (auto p = first; p < end; ++p) sum += f(at[p], 0);
      *total += static_cast<double>(sum);
    }
}

template <class F>
void sum(const ChannelOrder& order, const float* data, std::int64_t lanes, const F& f, double* total) {
  if (lanes == 16) return sum_lanes<16>(order, data, f, total);
  if (lanes == 8) return sum_lanes<8>(order, data, f, total);
  if (lanes == 1 && order.pixel_step == 1) return sum_row(order, data, f, total);
  for (int lane = 0; lane < lanes; ++lane)
    sum_lanes<1>(
        order, data + lane, [&](float value, int) { return f(value, lane); }, total + lane);
}

void of_lanes(const ChannelOrder& order, const float* data, std::int64_t lanes, float* mean, float* variance) {
  const auto count = static_cast<double>(order.images * order.pixels);
  // differences to one of the values, so that a mean that is large beside the deviation costs no digits
  float about[most_lanes] = {}, middle[most_lanes] = {};
  std::copy_n(data, count > 0 ? lanes : 0, about);
  double total[most_lanes] = {}, squares[most_lanes] = {};
  const auto difference = [&](float value, int lane) { return value - about[lane]; };
  sum(order, data, lanes, difference, total);
  for (int lane = 0; lane < lanes; ++lane)
    middle[lane] = static_cast<float>(static_cast<double>(about[lane]) + total[lane] / count);
  const auto square = [&](float value, int lane) { return (value - middle[lane]) * (value - middle[lane]); };
  sum(order, data, lanes, square, squares);
  for (int lane = 0; lane < lanes; ++lane) {
    mean[lane] = middle[lane];
    variance[lane] = static_cast<float>(squares[lane] / count);
  }
}

}  // namespace

std::optional<ChannelOrder> channel_order(const memory::desc& desc) {
  const Dims dims = desc.get_dims(), strides = desc.get_strides(), blocks = desc.get_inner_blks();
  const bool in_blocks = desc.get_inner_nblks() == 1 && desc.get_inner_idxs()[0] == 1;
  if (dims.size() < 2 || (desc.get_inner_nblks() != 0 && !in_blocks)) return std::nullopt;
  ChannelOrder order{.images = dims[0], .channels = dims[1], .pixels = 1, .image_step = strides[0]};
  order.width = in_blocks ? blocks[0] : strides[1] == 1 ? dims[1] : 1;
  order.block_step = strides[1];
  order.pixel_step = order.width;
  for (std::size_t d = dims.size(); d-- > 2;) {
    if (dims[d] == 1) continue;
    if (order.pixels == 1) order.pixel_step = strides[d];
    if (strides[d] != order.pixels * order.pixel_step) return std::nullopt;
    order.pixels *= dims[d];
  }
  return order;
}

void channel_statistics(const ChannelOrder& order, const float* data, float* mean, float* variance) {
  const auto lanes = std::min(order.width, most_lanes);
#pragma omp parallel for schedule(static)
  for (std::int64_t first = 0; first < order.channels; first += lanes) {
    const auto* from = data + first / order.width * order.block_step + first % order.width;
    of_lanes(order, from, std::min(lanes, order.channels - first), mean + first, variance + first);
  }
}

}  // namespace strata::onednn
