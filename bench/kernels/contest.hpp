// SPDX-License-Identifier: Apache-2.0
// Times several ways to do the same work against each other in one process: in every round each runs one block, in a
// random order, so that what else the machine does hits all alike. What counts is the least block and the median over
// rounds of the ratio to the first contender.
#pragma once

#include <algorithm>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace bench {

struct Contender {
  std::string name;
  std::function<void(int)> run;        // with the number of the iteration
  double error = 0;                    // of its result against float64, in units of 2^-24
  double least_ms = 0, median_ms = 0;  // an iteration
  double ratio = 1;                    // times as fast as the first contender: the median over rounds
};

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// `processor`: time that the calling thread had a processor; of use with one thread only, and then what else the
// machine does costs caches, but no time.
enum class Clock : unsigned char { wall, processor };

inline double now_ms(Clock clock) {
  timespec t{};
  clock_gettime(clock == Clock::wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) * 1e3 + double(t.tv_nsec) * 1e-6;
}

// Milliseconds an iteration of a block.
inline double block_ms(const Contender& contender, int iterations, int& number, Clock clock) {
  const double begin = now_ms(clock);
  for (int i = 0; i < iterations; ++i) contender.run(number++);
  return (now_ms(clock) - begin) / iterations;
}

// Rounds until `seconds` have passed, at least 7; a block takes about `wanted_ms`.
inline void contest(std::vector<Contender>& contenders, double seconds, std::mt19937& engine, Clock clock,
                    double wanted_ms = 4) {
  std::vector<int> iterations, order(contenders.size());
  std::vector<std::vector<double>> times(contenders.size());
  std::iota(order.begin(), order.end(), 0);
  int number = 0;
  for (auto& c : contenders) {
    block_ms(c, 2, number, clock);
    iterations.push_back(std::clamp(int(wanted_ms / std::max(1e-4, block_ms(c, 2, number, clock))), 1, 20000));
  }
  const double end = now_ms(Clock::wall) + seconds * 1e3;
  for (int round = 0; round < 7 || now_ms(Clock::wall) < end; ++round) {
    std::shuffle(order.begin(), order.end(), engine);
    for (const int i : order) times[i].push_back(block_ms(contenders[i], iterations[i], number, clock));
  }
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    std::vector<double> ratios;
    for (std::size_t r = 0; r < times[i].size(); ++r) ratios.push_back(times[0][r] / times[i][r]);
    contenders[i].least_ms = *std::min_element(times[i].begin(), times[i].end());
    contenders[i].median_ms = median(times[i]);
    contenders[i].ratio = median(ratios);
  }
}

}  // namespace bench
