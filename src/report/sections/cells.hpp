// SPDX-License-Identifier: Apache-2.0
// Cells of tables from a result (analysis/result.hpp).
#pragma once

#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/result.hpp"
#include "report/document.hpp"

namespace strata::report {

inline constexpr double kSecondsPerMs = 1e-3;

// A number of facts that may be missing, as of a row's memory; `member` points to it.
template <class Facts>
analysis::OptionalNumber member_of(const std::optional<Facts>& facts, auto member) {
  return facts ? analysis::OptionalNumber((*facts).*member) : std::nullopt;
}

// The number times `factor`; absent where it is unknown.
document::Cell value_cell(analysis::OptionalNumber value, document::NumberFormat format, double factor = 1);

// The same of milliseconds, as a time.
document::Cell time_cell(analysis::OptionalNumber milliseconds);

// The value with its interval; absent where there is none.
document::Cell estimate_cell(const analysis::Estimate& estimate, document::NumberFormat format, double factor = 1);
template <std::derived_from<analysis::Estimate> Estimated>
document::Cell estimate_cell(const std::optional<Estimated>& estimate, document::NumberFormat format,
                             double factor = 1) {
  return estimate ? estimate_cell(*estimate, format, factor) : document::Absent{};
}

// "faster", "slower", "same within 4.1%", "inconclusive"; absent for the reference and without a verdict.
document::Cell verdict_cell(std::optional<analysis::RatioVerdict> verdict,
                            analysis::OptionalNumber same_within_percent = {});

// "out of memory: its first sentence".
document::Absent absent_for(const std::string& state, const std::string& reason);

document::Column left_column(std::string id, std::string title);

// Levels with a number that figures show: harness levels would squeeze the rest into a corner.
std::vector<const analysis::RowResult*> drawn_rows(const analysis::CaseResult& one_case);

// Of each of these rows the number that `number_of` gives, times `factor`; not a number where it is unknown.
std::vector<double> values_of(const std::vector<const analysis::RowResult*>& rows, auto number_of, double factor = 1) {
  std::vector<double> values;
  for (const auto* row : rows)
    values.push_back(factor * number_of(*row).value_or(std::numeric_limits<double>::quiet_NaN()));
  return values;
}
std::vector<std::string> names_of(const std::vector<const analysis::RowResult*>& rows);

// Adds a line a level: its name, and a column for each of these numbers of `facts`, as of its memory.
template <class Facts, class Value = analysis::OptionalNumber>
void add_facts(document::Table& table, const std::vector<const analysis::RowResult*>& rows,
               std::optional<Facts> analysis::RowResult::*facts,
               const std::vector<std::pair<document::Column, Value Facts::*>>& columns, document::NumberFormat format,
               double factor = 1) {
  table.columns.push_back(left_column("level", "level"));
  for (const auto& [column, member] : columns) table.columns.push_back(column);
  for (const auto* row : rows) {
    auto& cells = table.rows.emplace_back(std::vector<document::Cell>{row->name()});
    for (const auto& [column, member] : columns)
      cells.push_back(value_cell(member_of(row->*facts, member), format, factor));
  }
}

}  // namespace strata::report
