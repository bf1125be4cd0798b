// SPDX-License-Identifier: Apache-2.0
#include "stats/schedule.hpp"

#include <algorithm>

namespace strata::stats {

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;  // splitmix64, Steele, Lea and Flood 2014
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t Random::below(std::uint64_t bound) {
  const std::uint64_t unfair = -bound % bound;  // 2^64 mod bound: draws below it would favour small numbers
  std::uint64_t draw = next();
  while (draw < unfair) draw = next();
  return draw % bound;
}

std::vector<std::vector<int>> williams(int n) {
  // First row 0, 1, n-1, 2, n-2, ...: its successive differences are all different modulo n; rows shift it.
  std::vector<int> first;
  for (int i = 0; i < n; ++i) first.push_back(i % 2 ? (i + 1) / 2 : (n - i / 2) % n);
  std::vector<std::vector<int>> rows;
  for (int shift = 0; shift < n; ++shift) {
    std::vector<int> row;
    for (int level : first) row.push_back((level + shift) % n);
    rows.push_back(row);
    // With n odd the differences pair up, so that only rows together with their mirror images are balanced.
    if (n % 2 && n > 1) rows.emplace_back(row.rbegin(), row.rend());
  }
  return rows;
}

Schedule::Schedule(int levels, std::uint64_t seed, int rounds_per_draw)
    : levels_(levels), rounds_per_draw_(std::max(rounds_per_draw, 1)), random_(seed) {}

std::vector<int> Schedule::next_of_two() {
  if (round_++ % rounds_per_draw_ == 0) first_ = static_cast<int>(random_.below(2));
  return {first_, 1 - first_};
}

void Schedule::refill() {
  std::vector<int> labels;
  for (int i = 0; i < levels_; ++i) labels.push_back(i);
  random_.shuffle(labels);
  rows_ = williams(levels_);
  for (std::vector<int>& row : rows_)
    for (int& level : row) level = labels[static_cast<std::size_t>(level)];
  random_.shuffle(rows_);
}

std::vector<int> Schedule::next() {
  if (levels_ <= 0) return {};
  if (levels_ == 1) return {0};
  if (levels_ == 2) return next_of_two();
  if (rows_.empty()) refill();
  auto row = std::find_if(rows_.begin(), rows_.end(), [this](const auto& r) { return r.front() != last_; });
  if (row == rows_.end()) row = rows_.begin();
  std::vector<int> order = std::move(*row);
  rows_.erase(row);
  last_ = order.back();
  return order;
}

}  // namespace strata::stats
