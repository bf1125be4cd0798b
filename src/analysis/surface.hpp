// SPDX-License-Identifier: Apache-2.0
// The cases of a run as a grid: which axes vary, and in each cell the levels' times and which of them may be the
// fastest.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/meters.hpp"
#include "stats/best.hpp"
#include "store/record.hpp"

namespace strata::analysis {

// An axis that has several values in the run, these in ascending order: batch, size, mode, precision, threads, device.
struct GridAxis {
  std::string name;
  std::vector<std::string> values;
};

// What is known of a level in a cell.
struct CellLevel {
  State state = State::failed;
  std::string reason;            // of one that was not measured
  stats::Interval iteration_ms;  // with the 99% interval of its restarts; NaN: not known
  std::optional<double> peak_bytes;
  std::optional<double> expected_bytes;  // of a peak that was not measured here but foreseen from other points
  std::optional<double> steady_bytes, share_bytes;  // private, warmed up; all of it, with its share of what others map
  std::optional<double> device_bytes;               // the most of the GPU
  std::map<core::Metric, Meter> meters;             // of a measured level
  stats::Interval speedup;                          // over the case's reference; NaN: not known, or not reliable
  stats::Interval processor_speedup;                // where that is not reliable: by processor time
  stats::Direction direction = stats::Direction::inconclusive;
};

struct GridCell {
  const store::Case* run_case = nullptr;
  std::vector<std::string> at;              // values of the grid's axes, in their order
  std::map<std::string, CellLevel> levels;  // by name; harness levels are left out
  std::vector<std::string> best;            // not excluded as the fastest; empty: none was measured, or not reliably
  double tie_within = 0;                    // stats::BestSet
  bool reliable = true;                     // other programs did not take most blocks' processors
  double batch = 1;
  double minimum_effect = 0.01;  // smaller differences are never claimed
  // Of each two levels with a number, {reference, level}: above 0 the level is faster. None where it is not reliable.
  std::map<std::pair<std::string, std::string>, stats::Comparison> comparisons;

  // nullptr: one of the two has no number here.
  const stats::Comparison* compared(const std::string& reference, const std::string& level) const;
};

struct Grid {
  std::vector<GridAxis> axes;
  std::vector<GridCell> cells;
  std::vector<std::string> levels;  // by rank as they stand in the cases
  std::string reference;

  const GridCell* find(const std::vector<std::string>& at) const;
};

// Every statistic from the raw samples, as a case's report has it.
Grid grid_of(const store::Run& run);

}  // namespace strata::analysis
