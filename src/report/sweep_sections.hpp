// SPDX-License-Identifier: Apache-2.0
// The sections of a sweep's report, and what it says in words, a file each.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/crossing.hpp"
#include "analysis/surface.hpp"
#include "report/document.hpp"
#include "report/sweep_layout.hpp"

namespace strata::report {

// sweep_values.cpp: the numbers of a level at a point, as tables and figures have them.

// A value with its interval, if both ends are known.
document::Number number_of(const stats::Interval& interval, document::NumberFormat format, double factor = 1);

// Behind a time of a point that is not reliable; no figure has such a number.
inline constexpr const char* kNotReliableMark = "?";

// In seconds.
document::Number iteration_time_of(const analysis::GridCell& cell, const analysis::CellLevel& level);
document::Number sample_time_of(const analysis::GridCell& cell, const analysis::CellLevel& level);

// Samples a second.
document::Number throughput_of(const analysis::GridCell& cell, const analysis::CellLevel& level);

// nullptr: there is no such point, or the level did not take part in it.
const analysis::CellLevel* level_in(const analysis::GridCell* cell, const std::string& name);

// sweep_sentences.cpp: only what the intervals decide (analysis/crossing.hpp).

// A few sentences for somebody in a hurry.
std::string sweep_summary(const analysis::Grid& grid);

// How often the sentences may be wrong.
std::string sweep_error_rates();

// A row a level: alone the fastest, within 10% of it, more than 100% behind, and what nobody can tell.
document::Table standings_table(const analysis::Grid& grid);

// A row a crossing; one without rows where no axis is crossed.
document::Table crossings_table(const analysis::Grid& grid);

// sweep_figures.cpp: pictures, as maps or in space.

// Who is the fastest in each field, or who may be, or why there is none.
std::vector<document::HeatMap> sweep_winners(const analysis::Grid& grid, const SweepLayout& layout);

// Time of a sample along the columns' axis, a panel a row. No item where no axis varies.
document::Section sweep_lines(const analysis::Grid& grid, const SweepLayout& layout);

// Speedup over the reference, times, throughput, memory and meters over rows and columns, a layer a level; quantities
// that no level has are left out.
document::Section sweep_surfaces(const analysis::Grid& grid, const SweepLayout& layout);

// Time of a sample against peak memory, a point a level and batch, a panel for each other work: points of different
// work are never compared. With the front as a line and as a table. No item where nothing has both.
document::Section sweep_time_and_memory(const analysis::Grid& grid, const SweepLayout& layout);

// A meter as people read it: its number is the metric's value times `factor`.
struct ShownMeter {
  core::Metric which;
  const char *id, *title, *unit = "";  // `unit`: where the format brings none
  document::NumberFormat format = document::NumberFormat::digits;
  double factor = 1;
  const char* note = "";
};
std::span<const ShownMeter> shown_meters();

// Absent with its reason where the level's meter has no value.
document::Cell meter_cell(const analysis::CellLevel& level, const ShownMeter& meter);

// A row a point and measured level. A meter that no level has anywhere is a sentence with the reason, no column.
document::Section sweep_meters(const analysis::Grid& grid);

// best_batch.cpp: of a sweep that looked for a batch, what it found for each level, and the curve it went along.
struct BestBatch {
  std::string sentence;
  document::Section section;
};
// nullopt: the run looked for none. `grid`: of the run.
std::optional<BestBatch> best_batch(const store::Run& run, const analysis::Grid& grid);

}  // namespace strata::report
