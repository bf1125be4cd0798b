// SPDX-License-Identifier: Apache-2.0
// Direct convolution (direct.hpp): a tile is at most kRows places times two blocks of output channels, whose sums stay
// in registers over all taps and input channels.
#include "direct.hpp"

#include <algorithm>

#include "matrix.hpp"
#include "threads.hpp"

namespace kit::kernels {
namespace {

constexpr int kGroup = 2;  // blocks of output channels of a tile
constexpr int kPart = 32;  // blocks of input channels that are summed before the sum is added to the total: rounding
constexpr int kAhead = 8;  // blocks of input channels that weights are fetched ahead
alignas(64) constexpr float kZeros[kBlock] = {};

}  // namespace

struct Direct::Call {
  const Direct& plan;
  const float *source, *packed, *bias, *residual;
  float* destination;
  const Convolution& shape = plan.shape_;
  const int in_blocks = blocks_of(shape.in_channels), out_blocks = blocks_of(shape.out_channels);
  const std::ptrdiff_t in_step = std::ptrdiff_t{shape.height} * shape.width * kBlock;  // from block to block
  const int image_places = shape.out_height * shape.out_width;

  struct Place {
    const float* image;
    int y, x;            // of the first tap; may lie outside
    std::ptrdiff_t out;  // of the first block of output channels
  };
  template <int rows>
  KIT_INLINE void place(int first, Place (&places)[rows]) const {
    int n = first / image_places, at = first % image_places, y = at / shape.out_width, x = at % shape.out_width;
    for (int r = 0; r < rows; ++r) {
      places[r] = {source + n * in_blocks * in_step, y * shape.stride_height - shape.pad_top,
                   x * shape.stride_width - shape.pad_left,
                   (std::ptrdiff_t{n} * out_blocks * image_places + at) * kBlock};
      ++at;
      if (++x < shape.out_width) continue;
      x = 0;
      if (++y < shape.out_height) continue;
      y = at = 0;
      ++n;
    }
  }

  // What a tap reads of each place.
  template <int rows>
  KIT_INLINE void point(const Place (&places)[rows], const Tap& tap, const float* (&row)[rows],
                        std::ptrdiff_t (&step)[rows]) const {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const int y = places[r].y + tap.y * shape.dilation_height, x = places[r].x + tap.x * shape.dilation_width;
      const bool inside = y >= 0 && x >= 0 && y < shape.height && x < shape.width;
      row[r] = inside ? places[r].image + (std::ptrdiff_t{y} * shape.width + x) * kBlock : kZeros;
      step[r] = inside ? in_step : 0;
    }
  }

  template <int rows, int blocks>
  static KIT_INLINE void clear(Vector (&sums)[rows][blocks]) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int k = 0; k < blocks; ++k) sums[r][k] = Vector{};
  }
  template <int rows, int blocks>
  static KIT_INLINE void add(Vector (&sums)[rows][blocks], const Vector (&part)[rows][blocks]) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int k = 0; k < blocks; ++k) sums[r][k] += part[r][k];
  }

  template <int rows, int blocks>
  void tile(int first, int out_group) const {
    Place places[rows];
    place(first, places);
    const std::ptrdiff_t out_step = std::ptrdiff_t{image_places} * kBlock, out = out_group * kGroup * out_step;
    if (residual)
      for (int r = 0; r < rows; ++r)
        for (int k = 0; k < blocks; ++k) __builtin_prefetch(residual + places[r].out + out + k * out_step);
    Vector sums[rows][blocks];
#pragma GCC unroll 2
    for (int k = 0; k < blocks; ++k)
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) sums[r][k] = bias ? load(bias + (out_group * kGroup + k) * kBlock) : Vector{};
    const std::ptrdiff_t channels = std::ptrdiff_t{in_blocks} * kBlock, taps = plan.taps_.size();
    const float* weights = packed + out_group * kGroup * kBlock * channels * taps;
    Vector part[rows][blocks];
    clear(part);
    int room = kPart;
    for (const Tap& tap : plan.taps_) {
      const float* row[rows];
      std::ptrdiff_t step[rows];
      point(places, tap, row, step);
      for (int done = 0, some; done < in_blocks; done += some, room -= some) {
        if (room == 0) {
          add(sums, part);
          clear(part);
          room = kPart;
        }
        some = std::min(in_blocks - done, room);
        accumulate<rows, blocks>(part, row, step, weights, some, kAhead * kBlock * blocks * kBlock);
        weights += some * kBlock * blocks * kBlock;
      }
    }
    add(sums, part);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int k = 0; k < blocks; ++k) {
        const std::ptrdiff_t at = places[r].out + out + k * out_step;
        Vector v = sums[r][k];
        if (residual) v += load(residual + at);
        store(destination + at, activate(v, shape.activation));
      }
  }

  // Some tiles of `places`, of which there are `count`.
  template <int blocks>
  void tiles(Range places, int count, Range which, int out_group) const {
    for (int t = which.begin; t < which.end; ++t) {
      const Range rows = part_of(places.end - places.begin, count, t);
      with_rows<kRows>(rows.end - rows.begin,
                       [&]<int some>() { tile<some, blocks>(places.begin + rows.begin, out_group); });
    }
  }

  void run(int thread, int threads) const {
    const int across = std::clamp(plan.plan_.channel_threads, 1, threads), down = threads / across;
    if (thread >= across * down) return;
    const Range groups = part_of(divide_up(out_blocks, kGroup), across, thread % across);
    const Range places = part_of(plan.places_, down, thread / across);
    const int count = divide_up(places.end - places.begin, kRows), rounds = divide_up(count, plan.plan_.tiles_at_once);
    for (int i = 0; i < rounds; ++i)
      for (int group = groups.begin; group < groups.end; ++group)
        if (group * kGroup + 1 < out_blocks)
          tiles<2>(places, count, part_of(count, rounds, i), group);
        else
          tiles<1>(places, count, part_of(count, rounds, i), group);
  }
};

DirectPlan Direct::plan(const Convolution& shape, int threads) {
  const double places = double(shape.batch) * shape.out_height * shape.out_width;
  const double weights = double(shape.kernel_height) * shape.kernel_width * shape.in_channels * shape.out_channels;
  const double source = double(shape.batch) * shape.in_channels * shape.height * shape.width;
  DirectPlan out;
  const int groups = divide_up(blocks_of(shape.out_channels), kGroup);
  const bool divides = groups >= 4 * threads || groups % threads == 0;
  // What is read by every thread should be the smaller of the two.
  if (places < kRows * threads || (divides && weights > source)) out.channel_threads = threads;
  return out;
}

Direct::Direct(const Convolution& shape, const DirectPlan& plan, int threads)
    : shape_(shape), plan_(plan), threads_(threads), places_(shape.batch * shape.out_height * shape.out_width) {
  plan_.tiles_at_once = std::clamp(plan.tiles_at_once, 1, divide_up(places_, kRows));
  const auto reached = [](int tap, int outputs, int stride, int dilation, int pad, int size) {
    for (int o = 0; o < outputs; ++o) {
      const int at = o * stride + tap * dilation - pad;
      if (at >= 0 && at < size) return true;
    }
    return false;
  };
  for (int y = 0; y < shape.kernel_height; ++y)
    for (int x = 0; x < shape.kernel_width; ++x)
      if (reached(y, shape.out_height, shape.stride_height, shape.dilation_height, shape.pad_top, shape.height) &&
          reached(x, shape.out_width, shape.stride_width, shape.dilation_width, shape.pad_left, shape.width))
        taps_.push_back({y, x});
}

std::size_t Direct::weight_floats() const {
  return taps_.size() * padded(shape_.in_channels) * padded(shape_.out_channels);
}

void Direct::pack(const float* weights, float* packed) const {
  const int in = padded(shape_.in_channels), taps = static_cast<int>(taps_.size());
  const int out_blocks = blocks_of(shape_.out_channels);
#pragma omp parallel for collapse(2) schedule(static)
  for (int block = 0; block < out_blocks; ++block)
    for (int t = 0; t < taps; ++t) {
      const int group = block / kGroup, blocks = std::min(kGroup, out_blocks - group * kGroup);
      float* to = packed + std::ptrdiff_t{group} * kGroup * kBlock * in * taps + (block % kGroup) * kBlock +
                  std::ptrdiff_t{t} * in * blocks * kBlock;
      for (int i = 0; i < in; ++i, to += blocks * kBlock)
        for (int lane = 0; lane < kBlock; ++lane) {
          const int o = block * kBlock + lane;
          const bool there = o < shape_.out_channels && i < shape_.in_channels;
          to[lane] = there
                         ? weights[((std::ptrdiff_t{o} * shape_.in_channels + i) * shape_.kernel_height + taps_[t].y) *
                                       shape_.kernel_width +
                                   taps_[t].x]
                         : 0.0F;
        }
    }
}

void Direct::run(const float* source, const float* packed, const float* bias, const float* residual, float* destination,
                 float*) const {
  const Call call{*this, source, packed, bias, residual, destination};
  in_parallel(threads_, [&](int thread, int threads) { call.run(thread, threads); });
}

}  // namespace kit::kernels
