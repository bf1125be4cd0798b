// SPDX-License-Identifier: Apache-2.0
#include "probe/limits.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "probe/machine.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace strata::probe {
namespace {

using Clock = std::chrono::steady_clock;

// One kernel of `rounds` rounds of independent multiply-adds; returns the floating-point operations it did. The chains
// outnumber latency x units (8 to 10 on all current cores); their sum is kept alive, so that nothing is optimised away.
using Kernel = double (*)(std::int64_t rounds, volatile float* sink);
constexpr int chains = 12;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) double fma_avx512(std::int64_t rounds, volatile float* sink) {
  __m512 sums[chains];
  const __m512 factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(0.001f);
  for (auto& sum : sums) sum = _mm512_set1_ps(*sink);
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm512_fmadd_ps(sum, factor, term);
  }
  for (auto& sum : sums) *sink = *sink + _mm512_cvtss_f32(sum);
  return 2.0 * 16 * chains * static_cast<double>(rounds);
}

__attribute__((target("avx2,fma"))) double fma_avx2(std::int64_t rounds, volatile float* sink) {
  __m256 sums[chains];
  const __m256 factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(0.001f);
  for (auto& sum : sums) sum = _mm256_set1_ps(*sink);
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm256_fmadd_ps(sum, factor, term);
  }
  for (auto& sum : sums) *sink = *sink + _mm256_cvtss_f32(sum);
  return 2.0 * 8 * chains * static_cast<double>(rounds);
}
#endif

// Four lanes of the compiler's own vectors: SSE2 on x86-64, NEON on aarch64. Without FMA the product and the sum are
// two instructions.
double multiply_add_generic(std::int64_t rounds, volatile float* sink) {
  using Lanes = float __attribute__((vector_size(16)));
  Lanes sums[chains];
  const Lanes factor = {0.999f, 0.999f, 0.999f, 0.999f}, term = {0.001f, 0.001f, 0.001f, 0.001f};
  for (auto& sum : sums) sum = Lanes{*sink, *sink, *sink, *sink};
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = sum * factor + term;
  }
  for (auto& sum : sums) *sink = *sink + sum[0];
  return 2.0 * 4 * chains * static_cast<double>(rounds);
}

std::pair<Kernel, const char*> best_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {fma_avx512, "avx512f"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {fma_avx2, "avx2"};
  return {multiply_add_generic, "sse2"};
#else
  return {multiply_add_generic, "generic"};
#endif
}

void pin(const std::vector<int>& processors, int index) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processors[static_cast<std::size_t>(index) % processors.size()], &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // a container may forbid it: then unpinned
}

// `work(thread)` on all threads at once, again and again until `budget` is spent; returns the highest sum of what the
// threads did per second, from the first start to the last end of a trial. `prepare(thread)` runs once on the same
// pinned thread (first touch).
double best_rate(int threads, Clock::duration budget, const std::function<void(int)>& prepare,
                 const std::function<double(int)>& work) {
  const auto processors = cpu().one_per_core;
  std::vector<Clock::time_point> starts(threads), ends(threads);
  std::vector<double> amounts(threads);
  double best = 0;
  bool again = true;
  const auto until = Clock::now() + budget;
  const auto score = [&]() noexcept {
    const std::chrono::duration<double> span =
        *std::max_element(ends.begin(), ends.end()) - *std::min_element(starts.begin(), starts.end());
    double sum = 0;
    for (const double amount : amounts) sum += amount;
    if (span.count() > 0) best = std::max(best, sum / span.count());
    again = Clock::now() < until;
  };
  std::barrier ready(threads);
  std::barrier done(threads, score);
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t) {
    team.emplace_back([&, t] {
      pin(processors, t);
      prepare(t);
      do {
        ready.arrive_and_wait();
        starts[t] = Clock::now();
        amounts[t] = work(t);
        ends[t] = Clock::now();
        done.arrive_and_wait();
      } while (again);
    });
  }
  for (auto& thread : team) thread.join();
  return best;
}

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

double peak_gflops(int threads, Clock::duration budget, Kernel kernel) {
  std::vector<float> sinks(static_cast<std::size_t>(threads) * 16, 1.0f);  // 64 bytes apart
  std::int64_t rounds = 1000;
  // as many rounds as take about 5 ms of this thread's own time: long enough for the clock and the barrier, short
  // enough to fall between other load; by the wall a thread that had to wait would do next to nothing
  for (double seconds = 0; seconds < 0.005 && rounds < (1ll << 40);) {
    const double start = cpu_seconds();
    kernel(rounds, sinks.data());
    seconds = cpu_seconds() - start;
    if (seconds < 0.005) rounds *= 2;
  }
  return best_rate(
             threads, budget, [](int) {},
             [&](int t) { return kernel(rounds, &sinks[static_cast<std::size_t>(t) * 16]); }) /
         1e9;
}

// One thread's three arrays and the slice of them that the next trial works on: short trials fall between other load,
// and the walk through arrays that no cache holds keeps every trial cold.
struct Arrays {
  std::unique_ptr<float[]> a, b, c;
  std::size_t count = 0, begin = 0, end = 0;
  int kind = 0;

  void next_slice() {
    constexpr std::size_t slice = 1 << 20;  // 4 MiB of each array
    begin = end + slice / 2 > count ? 0 : end;
    end = std::min(count, begin + slice);
    if (begin == 0) ++kind;
  }
};

#if defined(__x86_64__)
// a = b + s c past the caches, so that the written lines are not read first.
void triad_streaming(Arrays& x) {
  const __m128 scale = _mm_set1_ps(3.0f);
  for (std::size_t i = x.begin; i + 4 <= x.end; i += 4) {  // new[] aligns to 16 bytes, slices begin at multiples of 4
    _mm_stream_ps(&x.a[i], _mm_add_ps(_mm_loadu_ps(&x.b[i]), _mm_mul_ps(scale, _mm_loadu_ps(&x.c[i]))));
  }
  _mm_sfence();
}
#endif

using Words = std::uint64_t __attribute__((vector_size(32), aligned(4), may_alias));
using Floats = float __attribute__((vector_size(32), aligned(4), may_alias));

void triad(Arrays& x) {
  constexpr std::size_t step = sizeof(Floats) / sizeof(float);
  for (std::size_t i = x.begin; i + step <= x.end; i += step) {
    *reinterpret_cast<Floats*>(&x.a[i]) =
        *reinterpret_cast<const Floats*>(&x.b[i]) + 3.0f * *reinterpret_cast<const Floats*>(&x.c[i]);
  }
}

// Reads b and c; exclusive or, since it costs nothing beside the loads. Four chains hide its latency.
std::uint64_t read_only(const Arrays& x) {
  constexpr std::size_t step = sizeof(Words) / sizeof(float);
  Words sums[4] = {};
  for (const float* array : {x.b.get(), x.c.get()}) {
    for (std::size_t i = x.begin; i + 4 * step <= x.end; i += 4 * step) {
#pragma GCC unroll 4
      for (std::size_t k = 0; k < 4; ++k) sums[k] ^= *reinterpret_cast<const Words*>(array + i + k * step);
    }
  }
  const Words all = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  return all[0] ^ all[1] ^ all[2] ^ all[3];
}

double best_bandwidth(int threads, Clock::duration budget) {
  // three arrays of together four times the last cache at least, but no more than an eighth of the free memory
  const auto processor = cpu();
  const auto cache =
      std::max<std::uint64_t>({processor.l3_bytes, processor.l2_bytes * static_cast<std::uint64_t>(threads), 8u << 20});
  std::uint64_t room = memory().available_bytes / 8;
  if (const auto limit = cgroup_limits().memory_bytes) room = std::min(room, *limit / 8);
  const std::uint64_t bytes =
      std::min<std::uint64_t>(std::max<std::uint64_t>(room, 12u << 20), std::max<std::uint64_t>(4 * cache, 192u << 20));
  std::vector<Arrays> arrays(threads);
  std::vector<std::uint64_t> sinks(threads);
  const auto prepare = [&](int t) {
    Arrays& x = arrays[t];
    x.count = bytes / 3 / sizeof(float) / static_cast<std::size_t>(threads) / 64 * 64;
    for (auto* array : {&x.a, &x.b, &x.c}) {
      array->reset(new float[x.count]);
      std::fill_n(array->get(), x.count, 1.0f);
    }
  };
  const auto work = [&](int t) -> double {
    Arrays& x = arrays[t];
    x.next_slice();
    const double size = static_cast<double>(x.end - x.begin) * sizeof(float);
    switch (x.kind % 3) {
      case 0:
        sinks[t] ^= read_only(x);
        return 2 * size;
#if defined(__x86_64__)
      case 1:
        triad_streaming(x);
        return 3 * size;
#endif
      default:
        triad(x);
        return 3 * size;
    }
  };
  const double best = best_rate(threads, budget, prepare, work) / 1e9;
  volatile std::uint64_t keep = 0;
  for (const auto sink : sinks) keep = keep ^ sink;
  return best;
}

}  // namespace

Limits measure_limits(int threads, std::chrono::milliseconds budget) {
  Limits limits;
  limits.threads = std::max(1, threads);
  const auto [kernel, name] = best_kernel();
  limits.instruction_set = name;
  limits.gflops = peak_gflops(limits.threads, budget / 2, kernel);
  limits.gbytes_per_s = best_bandwidth(limits.threads, budget / 2);
  return limits;
}

}  // namespace strata::probe
