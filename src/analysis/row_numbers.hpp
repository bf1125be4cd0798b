// SPDX-License-Identifier: Apache-2.0
// What the samples of one measured row say by themselves: its times, its starts, what must be shipped. Reports and
// stored metrics take them from here.
#pragma once

#include <optional>

#include "analysis/case_statistics.hpp"

namespace strata::analysis {

struct RowNumbers {
  std::vector<double> wall_ms, latency_ms;  // every iteration
  stats::ShownTime time, latency;           // of one
  stats::Interval time_ms;                  // the same with the 99% interval of its restarts
  double throughput_per_s = stats::nan;     // inputs
  std::optional<double> cpu_ms;             // of one iteration
  double disturbed_share = stats::nan;      // of its blocks
  double restart_spread = stats::nan;       // standard deviation of the restarts' log times; NaN: fewer than two
};
// Row `i` of the statistics' measured rows; `batch`: inputs of an iteration.
RowNumbers row_numbers(const CaseStatistics& statistics, std::size_t i, double batch);

// Median of a part of the starts from caches ("load_ms"), NaN where there was none.
double start_part(const store::Row& row, std::optional<double> store::StartUp::*part);
// Of the very first start, in ms; nothing where none was seen or it is 0.
std::optional<double> cold_start(const store::Row& row, double store::ColdStart::*part);

// Everything that goes to another machine, in bytes: the artefact, and the code that the process mapped from outside
// the system. Nothing where one of them is not known.
std::optional<std::int64_t> shipped_bytes(const store::Row& row);

}  // namespace strata::analysis
