// SPDX-License-Identifier: Apache-2.0
// One layer with random tensors, and the error of a result against float64 on a sample of its elements.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "kit/vector.hpp"
#include "layers.hpp"

namespace bench {

struct Free {
  void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], Free>;

// On a cache line, all 0.
inline Floats make_floats(std::size_t count) {
  const std::size_t bytes = (count * sizeof(float) + 127) / 64 * 64;
  Floats out(static_cast<float*>(std::aligned_alloc(64, bytes)));
  std::fill_n(out.get(), bytes / sizeof(float), 0.0F);
  return out;
}

struct Problem {
  explicit Problem(const Layer& of);

  // Layout of the kit where there are at least 4 channels, else N C H W.
  float source_at(int n, int c, int y, int x) const;
  std::size_t destination_index(int n, int c, int y, int x) const;
  // ||result - exact|| / ||exact|| on 2000 elements, in units of 2^-24.
  double error(const float* result) const;

  Layer layer;
  Floats source, weights, bias, residual, destination;  // residual null without one; weights O I K K
  std::size_t destination_floats;

 private:
  struct Sample {
    std::size_t index;
    double value;
  };
  double exact(int n, int o, int y, int x) const;
  std::vector<Sample> samples_;
};

}  // namespace bench
