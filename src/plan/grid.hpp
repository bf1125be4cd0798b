// SPDX-License-Identifier: Apache-2.0
// The points of a sweep as a grid: which of them are looked at most closely.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/case_spec.hpp"

namespace strata::plan {

// Where in a sweep: its axes' values, ordered.
struct GridPoint {
  std::optional<std::int64_t> batch;                          // nullopt: the network's own
  std::string_view mode, precision;                           // their names
  std::optional<std::pair<std::int64_t, std::int64_t>> size;  // of images; nullopt: the network's own, or none
  int threads = 1;

  auto operator<=>(const GridPoint&) const = default;
};
GridPoint point_of(const core::CaseSpec& spec);
std::string words(const GridPoint& point);  // "batch 8, size 64, mode infer, precision fp32, threads 2"

class Grid {
 public:
  explicit Grid(const std::vector<core::CaseSpec>& specs);
  // Every axis is at one of its ends.
  bool is_corner(const core::CaseSpec& spec) const;
  // On one of the two lines on which batch or size varies and the other stays at its middle value.
  bool is_on_line(const core::CaseSpec& spec) const;

 private:
  std::set<std::optional<std::int64_t>> batches_;
  std::set<std::string_view> modes_, precisions_;
  std::set<std::optional<std::pair<std::int64_t, std::int64_t>>> sizes_;
  std::set<int> threads_;
};

}  // namespace strata::plan
