// SPDX-License-Identifier: Apache-2.0
// The order in which levels take turns: balanced, drawn from a seed, the same on every machine and standard library.
#pragma once

#include <cstdint>
#include <vector>

namespace strata::stats {

// A small generator (splitmix64) whose draws are fully specified, unlike std::uniform_int_distribution.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  // Uniform in 0..bound-1, without bias. bound must be above 0.
  std::uint64_t below(std::uint64_t bound);
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t state_;
};

// Williams design: each of n treatments follows each other one equally often within rows. n even: n rows; odd: 2n rows.
std::vector<std::vector<int>> williams(int n);

// Yields the order of each round. Three levels and more: Williams squares with levels relabelled and rows shuffled for
// each square, no level at once after itself where it can be avoided. Two: strict alternation, the first side drawn
// anew every `rounds_per_draw` rounds (about a second).
class Schedule {
 public:
  Schedule(int levels, std::uint64_t seed, int rounds_per_draw = 20);
  std::vector<int> next();

 private:
  std::vector<int> next_of_two();
  void refill();

  int levels_;
  int rounds_per_draw_;
  Random random_;
  int round_ = 0;
  int first_ = 0;
  int last_ = -1;                       // level that ran last
  std::vector<std::vector<int>> rows_;  // of the current square, not yet used
};

}  // namespace strata::stats
