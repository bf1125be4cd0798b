// SPDX-License-Identifier: Apache-2.0
// Random tensors and exact sums (problem.hpp). Sources are positive, as after a ReLU.
#include "problem.hpp"

#include <algorithm>
#include <cmath>

namespace bench {

using kit::kernels::kBlock;

namespace {

void fill(float* to, std::size_t count, unsigned seed, double deviation, bool positive) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, float(deviation));
  for (std::size_t i = 0; i < count; ++i) to[i] = positive ? std::fabs(normal(engine)) : normal(engine);
}

// Channels that pad a block are 0.
void clear_padding(float* blocked, int batch, int channels, std::size_t places) {
  if (channels % kBlock == 0) return;
  const int blocks = kit::kernels::blocks_of(channels);
  for (int n = 0; n < batch; ++n)
    for (std::size_t i = 0; i < places; ++i)
      for (int c = channels % kBlock; c < kBlock; ++c)
        blocked[((std::size_t(n) * blocks + blocks - 1) * places + i) * kBlock + c] = 0;
}

}  // namespace

Problem::Problem(const Layer& of) : layer(of) {
  const bool plain = layer.in_channels < 4;
  const std::size_t in_places = std::size_t(layer.height) * layer.width;
  const std::size_t out_places = std::size_t(layer.out_height()) * layer.out_width();
  const std::size_t sources =
      layer.batch * in_places * (plain ? layer.in_channels : kit::kernels::padded(layer.in_channels));
  const std::size_t count = std::size_t(layer.out_channels) * layer.in_channels * layer.kernel * layer.kernel;
  destination_floats = layer.batch * out_places * kit::kernels::padded(layer.out_channels);
  source = make_floats(sources);
  weights = make_floats(count);
  bias = make_floats(kit::kernels::padded(layer.out_channels));
  destination = make_floats(destination_floats);
  fill(source.get(), sources, 1, 1, true);
  if (!plain) clear_padding(source.get(), layer.batch, layer.in_channels, in_places);
  fill(weights.get(), count, 2, std::sqrt(2.0 / (layer.in_channels * layer.kernel * layer.kernel)), false);
  fill(bias.get(), layer.out_channels, 3, 0.1, false);
  if (layer.residual) {
    residual = make_floats(destination_floats);
    fill(residual.get(), destination_floats, 4, 1, true);
    clear_padding(residual.get(), layer.batch, layer.out_channels, out_places);
  }
  std::mt19937 engine(5);
  for (int i = 0; i < 2000; ++i) {
    const auto below = [&](int limit) { return int(engine() % unsigned(limit)); };
    const int n = below(layer.batch), o = below(layer.out_channels), y = below(layer.out_height()),
              x = below(layer.out_width());
    samples_.push_back({destination_index(n, o, y, x), exact(n, o, y, x)});
  }
}

float Problem::source_at(int n, int c, int y, int x) const {
  const std::size_t place = std::size_t(y) * layer.width + x, places = std::size_t(layer.height) * layer.width;
  if (layer.in_channels < 4) return source[(std::size_t(n) * layer.in_channels + c) * places + place];
  return source[((std::size_t(n) * kit::kernels::blocks_of(layer.in_channels) + c / kBlock) * places + place) * kBlock +
                c % kBlock];
}

std::size_t Problem::destination_index(int n, int c, int y, int x) const {
  const std::size_t blocks = kit::kernels::blocks_of(layer.out_channels);
  return (((n * blocks + c / kBlock) * layer.out_height() + y) * layer.out_width() + x) * kBlock + c % kBlock;
}

double Problem::exact(int n, int o, int y, int x) const {
  double sum = bias[o];
  for (int c = 0; c < layer.in_channels; ++c)
    for (int ky = 0; ky < layer.kernel; ++ky)
      for (int kx = 0; kx < layer.kernel; ++kx) {
        const int sy = y * layer.stride + ky - layer.padding, sx = x * layer.stride + kx - layer.padding;
        if (sy < 0 || sx < 0 || sy >= layer.height || sx >= layer.width) continue;
        sum += double(source_at(n, c, sy, sx)) *
               weights[((std::size_t(o) * layer.in_channels + c) * layer.kernel + ky) * layer.kernel + kx];
      }
  if (residual) sum += residual[destination_index(n, o, y, x)];
  return std::max(0.0, sum);
}

double Problem::error(const float* result) const {
  double difference = 0, size = 0;
  for (const auto& sample : samples_) {
    difference += (result[sample.index] - sample.value) * (result[sample.index] - sample.value);
    size += sample.value * sample.value;
  }
  return std::sqrt(difference / size) * 16777216.0;
}

}  // namespace bench
