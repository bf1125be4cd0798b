// SPDX-License-Identifier: Apache-2.0
// What levels take beside time at the points of a sweep: processors, waiting, page faults, energy, memory. The list of
// meters is here; the table and the maps show the same.
#pragma once

#include <span>

#include "analysis/surface.hpp"
#include "report/document.hpp"

namespace strata::report {

// A meter as people read it: its number is the metric's value times `factor`.
struct ShownMeter {
  core::Metric which;
  const char *id, *title, *unit = "";  // `unit`: where the format brings none
  document::Format format = document::Format::digits;
  double factor = 1;
  const char* note = "";
};
std::span<const ShownMeter> shown_meters();

// Absent with its reason where the level's meter has no value.
document::Cell meter_cell(const analysis::CellLevel& level, const ShownMeter& meter);

// A row a point and measured level. A meter that no level has anywhere is a sentence with the reason, no column.
document::Section sweep_meters(const analysis::Grid& grid);

}  // namespace strata::report
