// SPDX-License-Identifier: Apache-2.0
// Winograd convolution: tiles are transformed into panels, one a point of the transform; each panel is multiplied with
// that point's weights; sums are transformed back, finished (bias, residual, activation) and stored.
#include "winograd.hpp"

#include <algorithm>

#include "matrix.hpp"
#include "threads.hpp"
#include "winograd_transforms.hpp"

namespace kit::kernels {
namespace {

constexpr int kGroup = 2;          // blocks of output channels that a panel is multiplied with at once
constexpr int kChunk = 4 * kRows;  // tiles between multiplication and output transform: their sums stay in the cache

// Points of a tile lie an odd number of lines apart, else all of them fall into one set of the cache.
constexpr std::ptrdiff_t spread(std::ptrdiff_t floats) {
  return (floats + kLine - 1) / kLine / 2 * 2 * kLine + kLine;
}

std::ptrdiff_t panel_step(const Convolution3x3& shape, const WinogradPlan& plan) {
  return spread(std::ptrdiff_t{plan.tiles_at_once} * padded(shape.in_channels));
}
constexpr std::ptrdiff_t kSumsStep = spread(kChunk * kGroup * kBlock);

// Half a block, in which weights are transformed.
typedef float HalfVector __attribute__((vector_size(KIT_BLOCK / 2 * sizeof(float)), aligned(4), may_alias));
typedef double Wide __attribute__((vector_size(KIT_BLOCK / 2 * sizeof(double))));

int points(int tile) {
  return (tile + 2) * (tile + 2);
}

}  // namespace

struct Winograd::Call {
  const float *source, *packed, *bias, *residual;
  float *destination, *scratch;
};

template <int tile>
struct Winograd::Kernel {
  using Points = Transform<tile>;
  static constexpr int kSize = Points::kSize, kPoints = kSize * kSize;

  const Winograd& plan;
  const Call& call;
  const Convolution3x3& shape = plan.shape_;
  const int in_blocks = blocks_of(shape.in_channels), out_blocks = blocks_of(shape.out_channels);
  const int out_height = shape.out_height(), out_width = shape.out_width();
  const std::ptrdiff_t step = panel_step(shape, plan.plan_);

  struct Place {
    int image, y, x;  // of a tile, its first output
  };
  Place place_of(int t) const {
    const int across = t % plan.tiles_across_, row = t / plan.tiles_across_;
    return {row / plan.tiles_down_, row % plan.tiles_down_ * tile, across * tile};
  }
  static int groups_of(Range tiles) { return divide_up(tiles.end - tiles.begin, kRows); }
  // Tiles of a group, relative to the range.
  static Range group(Range tiles, int g) { return part_of(tiles.end - tiles.begin, groups_of(tiles), g); }

  static KIT_INLINE void transform_input(const float* from, std::ptrdiff_t row, float* to, std::ptrdiff_t step) {
    Vector half[kSize][kSize];
    for (int y = 0; y < kSize; ++y) {
      Vector d[kSize];
      for (int x = 0; x < kSize; ++x) d[x] = load(from + y * row + x * kBlock);
      Points::input(d, half[y]);
    }
    for (int x = 0; x < kSize; ++x) {
      Vector d[kSize], v[kSize];
      for (int y = 0; y < kSize; ++y) d[y] = half[y][x];
      Points::input(d, v);
      for (int y = 0; y < kSize; ++y) store(to + (y * kSize + x) * step, v[y]);
    }
  }

  // One block of channels of a tile into the panels, whose row is at `to`; what lies outside the image is 0.
  void input_tile(const Place& at, int block, float* to) const {
    const int y0 = at.y - shape.padding, x0 = at.x - shape.padding;
    const std::ptrdiff_t row = std::ptrdiff_t{shape.width} * kBlock;
    const float* image = call.source + (std::ptrdiff_t{at.image} * in_blocks + block) * shape.height * row;
    if (y0 >= 0 && x0 >= 0 && y0 + kSize <= shape.height && x0 + kSize <= shape.width)
      return transform_input(image + y0 * row + x0 * kBlock, row, to, step);
    float clipped[kPoints * kBlock] = {};
    const int top = std::max(0, -y0), bottom = std::min(kSize, shape.height - y0);
    const int left = std::max(0, -x0), right = std::min(kSize, shape.width - x0);
    for (int y = top; y < bottom; ++y)
      for (int x = left; x < right; ++x)
        store(clipped + (y * kSize + x) * kBlock, load(image + (y0 + y) * row + (x0 + x) * kBlock));
    transform_input(clipped, kSize * kBlock, to, step);
  }

  void input(Range tiles, int g, int block, float* panels) const {
    const Range rows = group(tiles, g);
    const int count = rows.end - rows.begin;
    float* to = panels + std::ptrdiff_t{rows.begin} * in_blocks * kBlock + std::ptrdiff_t{block} * count * kBlock;
    for (int t = rows.begin; t < rows.end; ++t, to += kBlock) input_tile(place_of(tiles.begin + t), block, to);
  }

  template <int blocks>
  void multiply(int rows, const float* panel, const float* weights, float* sums) const {
    with_rows<kRows>(rows, [&]<int count>() {
      Vector sum[count][blocks];
#pragma GCC unroll 16
      for (int r = 0; r < count; ++r)
#pragma GCC unroll 2
        for (int k = 0; k < blocks; ++k) sum[r][k] = Vector{};
      accumulate_panel<count, blocks>(sum, panel, weights, in_blocks, in_blocks * kBlock * blocks * kBlock);
#pragma GCC unroll 16
      for (int r = 0; r < count; ++r)
#pragma GCC unroll 2
        for (int k = 0; k < blocks; ++k) store(sums + (r * blocks + k) * kBlock, sum[r][k]);
    });
  }

  void output_tile(const Place& at, int block, const float* sums) const {
    Vector half[tile][kSize];
    for (int x = 0; x < kSize; ++x) {
      Vector v[kSize], y[tile];
      for (int row = 0; row < kSize; ++row) v[row] = load(sums + (row * kSize + x) * kSumsStep);
      Points::output(v, y);
      for (int row = 0; row < tile; ++row) half[row][x] = y[row];
    }
    const Vector bias = call.bias ? load(call.bias + block * kBlock) : Vector{};
    const int bottom = std::min(tile, out_height - at.y), right = std::min(tile, out_width - at.x);
    std::ptrdiff_t place = ((std::ptrdiff_t{at.image} * out_blocks + block) * out_height + at.y) * out_width + at.x;
    for (int row = 0; row < tile; ++row, place += out_width) {
      if (row >= bottom) break;
      Vector y[tile];
      Points::output(half[row], y);
      for (int x = 0; x < tile; ++x) {
        if (x >= right) break;
        Vector v = y[x] + bias;
        if (call.residual) v += load(call.residual + (place + x) * kBlock);
        store(call.destination + (place + x) * kBlock, activate(v, shape.activation));
      }
    }
  }

  // Multiplies groups [first, last) of the tiles with one group of output channels, and finishes them.
  template <int blocks>
  void finish(Range tiles, Range groups, int out_group, const float* panels, float* sums) const {
    const std::ptrdiff_t channels = std::ptrdiff_t{in_blocks} * kBlock;
    const float* weights = call.packed + out_group * kGroup * kBlock * channels * kPoints;
    const int base = group(tiles, groups.begin).begin, end = group(tiles, groups.end - 1).end;
    for (int point = 0; point < kPoints; ++point, weights += blocks * kBlock * channels)
      for (int g = groups.begin; g < groups.end; ++g) {
        const Range rows = group(tiles, g);
        multiply<blocks>(rows.end - rows.begin, panels + point * step + rows.begin * channels, weights,
                         sums + point * kSumsStep + (rows.begin - base) * blocks * kBlock);
      }
    for (int k = 0; k < blocks; ++k)
      for (int t = base; t < end; ++t)
        output_tile(place_of(tiles.begin + t), out_group * kGroup + k, sums + ((t - base) * blocks + k) * kBlock);
  }

  int out_groups() const {
    return divide_up(out_blocks, kGroup);
  }
  static int chunks_of(Range tiles) {
    return divide_up(groups_of(tiles), kChunk / kRows);
  }

  void finish_chunk(Range tiles, int chunk, int out_group, const float* panels, float* sums) const {
    const Range groups = part_of(groups_of(tiles), chunks_of(tiles), chunk);
    if (out_group * kGroup + 1 < out_blocks)
      finish<2>(tiles, groups, out_group, panels, sums);
    else
      finish<1>(tiles, groups, out_group, panels, sums);
  }

  float* sums_of(int thread) const {
    return call.scratch + std::ptrdiff_t{thread} * kPoints * kSumsStep;
  }
  float* panels_of(int thread) const {
    return call.scratch + std::ptrdiff_t{plan.threads_} * kPoints * kSumsStep + thread * kPoints * step;
  }

  void run_alone(Range tiles, int thread) const {
    float *panels = panels_of(thread), *sums = sums_of(thread);
    for (int g = 0; g < groups_of(tiles); ++g)
      for (int block = 0; block < in_blocks; ++block) input(tiles, g, block, panels);
    for (int out_group = 0; out_group < out_groups(); ++out_group)
      for (int chunk = 0; chunk < chunks_of(tiles); ++chunk) finish_chunk(tiles, chunk, out_group, panels, sums);
  }

  // By all threads together, each in step with the others.
  void run_shared(Range tiles, int thread, int threads) const {
    float *panels = panels_of(0), *sums = sums_of(thread);
    const Range inputs = part_of(groups_of(tiles) * in_blocks, threads, thread);
    for (int i = inputs.begin; i < inputs.end; ++i) input(tiles, i / in_blocks, i % in_blocks, panels);
    wait_for_all();
    const int chunks = chunks_of(tiles);
    const Range outputs = part_of(out_groups() * chunks, threads, thread);
    for (int i = outputs.begin; i < outputs.end; ++i) finish_chunk(tiles, i % chunks, i / chunks, panels, sums);
  }

  void run() const {
    const int at_once = plan.plan_.tiles_at_once;
    in_parallel(plan.threads_, [&](int thread, int threads) {
      const Range mine = plan.plan_.shared ? Range{0, plan.tiles_} : part_of(plan.tiles_, threads, thread);
      const int count = mine.end - mine.begin, rounds = divide_up(count, at_once);
      for (int i = 0; i < rounds; ++i) {
        const Range part = part_of(count, rounds, i);
        const Range tiles{mine.begin + part.begin, mine.begin + part.end};
        if (!plan.plan_.shared) {
          run_alone(tiles, thread);
          continue;
        }
        if (i > 0) wait_for_all();  // until nobody reads the panels of the round before
        run_shared(tiles, thread, threads);
      }
    });
  }

  // Half a block of output channels, of one input channel: `taps` to `to`, whose points lie `step` floats apart.
  static void transform_weights(const float* taps, float* to, std::ptrdiff_t step) {
    Wide half[3][kSize];
    for (int y = 0; y < 3; ++y) {
      Wide row[3];
      for (int x = 0; x < 3; ++x)
        row[x] = __builtin_convertvector(*reinterpret_cast<const HalfVector*>(taps + (y * 3 + x) * kBlock), Wide);
      Points::weights(row, half[y]);
    }
    for (int x = 0; x < kSize; ++x) {
      const Wide column[3] = {half[0][x], half[1][x], half[2][x]};
      Wide u[kSize];
      Points::weights(column, u);
      for (int y = 0; y < kSize; ++y)
        *reinterpret_cast<HalfVector*>(to + (y * kSize + x) * step) = __builtin_convertvector(u[y], HalfVector);
    }
  }

  template <class TapsOf>
  static void pack(const Convolution3x3& shape, const TapsOf& taps_of, float* packed) {
    const int in = padded(shape.in_channels), out_blocks = blocks_of(shape.out_channels);
#pragma omp parallel for collapse(2) schedule(static)
    for (int block = 0; block < out_blocks; ++block)
      for (int i = 0; i < in; ++i) {
        const int group = block / kGroup, blocks = std::min(kGroup, out_blocks - group * kGroup);
        const std::ptrdiff_t channel = std::ptrdiff_t{blocks} * kBlock;
        float* to = packed + std::ptrdiff_t{group} * kGroup * kBlock * in * kPoints + (block % kGroup) * kBlock;
        float taps[9 * kBlock];
        taps_of(block, i, taps);
        for (const int half : {0, kBlock / 2}) transform_weights(taps + half, to + i * channel + half, in * channel);
      }
  }
};

WinogradPlan Winograd::plan(const Convolution3x3& shape, int threads) {
  WinogradPlan out;
  out.tile = winograd_tile(work_of(shape), threads);
  const int tiles = shape.batch * divide_up(shape.out_height(), out.tile) * divide_up(shape.out_width(), out.tile);
  out.shared = tiles < 2 * kChunk * threads;
  out.tiles_at_once = out.shared ? 2 * kChunk * threads : kChunk;
  return out;
}

Winograd::Winograd(const Convolution3x3& shape, const WinogradPlan& plan, int threads)
    : shape_(shape),
      plan_(plan),
      threads_(threads),
      tiles_down_(divide_up(shape.out_height(), plan.tile)),
      tiles_across_(divide_up(shape.out_width(), plan.tile)),
      tiles_(shape.batch * tiles_down_ * tiles_across_) {
  plan_.tiles_at_once = std::max(1, std::min(plan.tiles_at_once, tiles_));
}

std::size_t Winograd::weight_floats() const {
  return std::size_t(points(plan_.tile)) * padded(shape_.in_channels) * padded(shape_.out_channels);
}

std::size_t Winograd::scratch_floats() const {
  const std::size_t panels = plan_.shared ? 1 : threads_;
  return points(plan_.tile) * (threads_ * std::size_t(kSumsStep) + panels * panel_step(shape_, plan_));
}

// `taps_of(block, i, taps)` writes those of input channel i for a block of output channels: [9][kBlock].
template <class TapsOf>
void Winograd::pack_taps(const TapsOf& taps_of, float* packed) const {
  if (plan_.tile == 2)
    Kernel<2>::pack(shape_, taps_of, packed);
  else
    Kernel<4>::pack(shape_, taps_of, packed);
}

void Winograd::pack(const float* weights, float* packed) const {
  const int in = shape_.in_channels, out = shape_.out_channels;
  pack_taps(
      [=](int block, int i, float* taps) {
        for (int lane = 0; lane < kBlock; ++lane) {
          const int o = block * kBlock + lane;
          const bool there = o < out && i < in;
          for (int tap = 0; tap < 9; ++tap)
            taps[tap * kBlock + lane] = there ? weights[(std::ptrdiff_t{o} * in + i) * 9 + tap] : 0.0F;
        }
      },
      packed);
}

void Winograd::pack_blocks(const float* weights, float* packed) const {
  const int in_blocks = blocks_of(shape_.in_channels);
  pack_taps(
      [=](int block, int i, float* taps) {
        const float* from = weights + (std::ptrdiff_t{block} * in_blocks + i / kBlock) * 9 * kBlock * kBlock;
        for (int tap = 0; tap < 9; ++tap) store(taps + tap * kBlock, load(from + (tap * kBlock + i % kBlock) * kBlock));
      },
      packed);
}

void Winograd::pack_gradient(const float* weights, float* packed) const {
  const int out_blocks = blocks_of(shape_.out_channels);
  pack_taps(
      [=](int block, int i, float* taps) {
        const float* from = weights + (std::ptrdiff_t{i / kBlock} * out_blocks + block) * 9 * kBlock * kBlock;
        for (int tap = 0; tap < 9; ++tap)
          for (int lane = 0; lane < kBlock; ++lane)
            taps[tap * kBlock + lane] = from[((8 - tap) * kBlock + lane) * kBlock + i % kBlock];
      },
      packed);
}

void Winograd::run(const float* source, const float* packed, const float* bias, const float* residual,
                   float* destination, float* scratch) const {
  const Call call{source, packed, bias, residual, destination, scratch};
  if (plan_.tile == 2)
    Kernel<2>{*this, call}.run();
  else
    Kernel<4>{*this, call}.run();
}

}  // namespace kit::kernels
