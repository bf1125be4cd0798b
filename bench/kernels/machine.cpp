// SPDX-License-Identifier: Apache-2.0
// The machine's limits (machine.hpp).
#include "machine.hpp"

#include <algorithm>
#include <chrono>

#include "kit/threads.hpp"
#include "problem.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Twelve chains: two units with a latency of four cycles need eight.
float multiply_add(int rounds) {
  using kit::kernels::Vector;
  Vector sum[12];
  for (int k = 0; k < 12; ++k) sum[k] = Vector{} + float(k);  // else they are one
  const Vector x = Vector{} + 1.0F / 3, y = Vector{} + 0.25F;
  for (int i = 0; i < rounds; ++i)
    for (int k = 0; k < 12; ++k) sum[k] = sum[k] * x + y;
  float out = 0;
  for (const auto& s : sum) out += s[0];
  return out;
}

float read_all(const float* from, std::size_t count) {
  kit::kernels::Vector sum[8] = {};
  for (std::size_t i = 0; i + 8 * kit::kernels::kBlock <= count; i += 8 * kit::kernels::kBlock)
    for (int k = 0; k < 8; ++k) sum[k] += kit::kernels::load(from + i + k * kit::kernels::kBlock);
  float out = 0;
  for (const auto& s : sum) out += s[0];
  return out;
}

volatile float sink;

double read_gbytes_s(int threads, std::size_t floats, int times) {
  const Floats data = make_floats(floats);
  double best = 0;
  for (int i = 0; i < 8; ++i) {
    const auto begin = Clock::now();
    kit::kernels::in_parallel(threads, [&](int thread, int count) {
      const std::size_t each = floats / count;
      for (int t = 0; t < times; ++t) sink = read_all(data.get() + thread * each, each);
    });
    best = std::max(best, 4e-9 * floats * times / since(begin));
  }
  return best;
}

}  // namespace

Machine measure_machine(int threads) {
  Machine out{};
  constexpr int kRounds = 2000000;
  for (int i = 0; i < 8; ++i) {
    const auto begin = Clock::now();
    kit::kernels::in_parallel(threads, [&](int, int) { sink = multiply_add(kRounds); });
    out.gflops = std::max(out.gflops, 2e-9 * threads * kit::kernels::kBlock * 12 * kRounds / since(begin));
  }
  out.memory_gbytes_s = read_gbytes_s(threads, 64 << 20, 1);
  out.cache_gbytes_s = read_gbytes_s(threads, 2 << 20, 20);
  return out;
}

}  // namespace bench
