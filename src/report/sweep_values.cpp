// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "report/sweep_sections.hpp"

namespace strata::report {

document::Number number_of(const stats::Interval& interval, document::NumberFormat format, double factor) {
  document::Number number{.value = factor * interval.value, .format = format};
  if (std::isfinite(interval.low) && std::isfinite(interval.high))
    number.low = factor * interval.low, number.high = factor * interval.high;
  return number;
}

namespace {

document::Number marked(const analysis::GridCell& cell, document::Number number) {
  if (!cell.reliable) number.mark = kNotReliableMark;
  return number;
}

}  // namespace

document::Number iteration_time_of(const analysis::GridCell& cell, const analysis::CellLevel& level) {
  return marked(cell, number_of(level.iteration_ms, document::NumberFormat::seconds, 1e-3));
}

document::Number sample_time_of(const analysis::GridCell& cell, const analysis::CellLevel& level) {
  return marked(cell, number_of(level.iteration_ms, document::NumberFormat::seconds, 1e-3 / cell.batch));
}

document::Number throughput_of(const analysis::GridCell& cell, const analysis::CellLevel& level) {
  const auto& ms = level.iteration_ms;
  return marked(cell, number_of({1e3 * cell.batch / ms.value, 1e3 * cell.batch / ms.high, 1e3 * cell.batch / ms.low},
                                document::NumberFormat::digits));
}

const analysis::CellLevel* level_in(const analysis::GridCell* cell, const std::string& name) {
  if (!cell) return nullptr;
  const auto it = cell->levels.find(name);
  return it == cell->levels.end() ? nullptr : &it->second;
}

}  // namespace strata::report
