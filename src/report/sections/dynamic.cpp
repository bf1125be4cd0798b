// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <set>

#include "report/format.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

std::vector<const Json*> open_batch_rows(const Json& one_case) {
  std::vector<const Json*> rows;
  for (const Json* row : sorted_rows(one_case))
    if (at(*row, "dynamic").is_object()) rows.push_back(row);
  return rows;
}

std::vector<document::Cell> open_batch_cells(const Json& row) {
  const Json& dynamic = at(row, "dynamic");
  std::vector<document::Cell> cells{level_name(row)};
  if (!is_measured(dynamic)) {
    cells.insert(cells.end(), 5, absent_for(text(dynamic, "state"), text(dynamic, "reason")));
    return cells;
  }
  const auto& ratio = at(dynamic, "against_fixed.ratio");
  const document::Absent why{first_sentence(text(dynamic, "against_fixed_note"))};
  const bool compared = number(ratio, "value").has_value();
  cells.emplace_back(fmt::format("{} of {}", text(dynamic, "recompiled"), text(dynamic, "unseen")));
  cells.push_back(number(dynamic, "recompiled").value_or(0) > 0 ? time_cell(dynamic, "recompile_ms")
                                                                : document::Absent{});
  cells.push_back(compared ? estimate_cell(ratio, document::Format::ratio) : document::Cell{why});
  cells.push_back(compared ? verdict_cell(ratio) : document::Cell{why});
  cells.push_back(time_cell(dynamic, "prepare_ms"));
  return cells;
}

document::Table open_batch_table(const std::vector<const Json*>& rows) {
  document::Table table{.id = "open_batch",
                        .title = "Sizes that a level had not seen, and its time against the fixed size"};
  table.columns = {left_column("level", "level"),
                   {.id = "recompiled", .title = "recompiled"},
                   {.id = "recompile_time", .title = "in all"},
                   {.id = "speedup", .title = "speedup over fixed (99% CI)"},
                   left_column("verdict", "verdict"),
                   {.id = "prepare", .title = "prepare"}};
  for (const Json* row : rows) table.rows.push_back(open_batch_cells(*row));
  return table;
}

// A line for each level, a column for each size: the settled time, and what the first call took longer where it
// compiled.
document::Table batch_sizes_table(const std::vector<const Json*>& rows) {
  std::set<int> batches;
  std::vector<std::pair<std::string, std::map<int, document::Cell>>> times;
  for (const Json* row : rows) {
    if (text(*row, "dynamic.state") != "measured") continue;
    auto& [name, of] = times.emplace_back(level_name(*row), std::map<int, document::Cell>{});
    for (const auto& size : list(*row, "dynamic.sizes")) {
      const int batch = whole(size, "batch", 0);
      batches.insert(batch);
      auto cell = time_cell(size, "settled_ms");
      if (auto* time = std::get_if<document::Number>(&cell); time && flag(size, "recompiled"))
        time->mark = "(+" + duration(number(size, "recompile_ms").value_or(0)) + ")";
      of[batch] = std::move(cell);
    }
  }
  document::Table table{.id = "sizes", .title = "Settled time of one iteration by batch size"};
  table.columns = {left_column("level", "batch")};
  for (const int batch : batches)
    table.columns.push_back({.id = fmt::format("batch_{}", batch), .title = count(batch)});
  for (auto& [name, of] : times) {
    table.rows.push_back({name});
    for (const int batch : batches) table.rows.back().push_back(of.contains(batch) ? of.at(batch) : document::Absent{});
  }
  table.note = "In brackets: what the first call of a size took longer, where it compiled again.";
  return table;
}

document::Table recompile_reasons(const std::vector<const Json*>& rows) {
  document::Table table{.id = "reasons", .title = "Recompilations"};
  table.columns = {left_column("level", "level"), left_column("reason", "reason")};
  for (const Json* row : rows)
    for (const auto& reason : list(*row, "dynamic.reported.reasons"))
      if (reason.is_string()) table.rows.push_back({level_name(*row), reason.get<std::string>()});
  return table;
}

}  // namespace

document::Section dynamic_section(const Json& one_case) {
  document::Section section{.id = "dynamic", .title = "One artefact over several batch sizes"};
  const auto rows = open_batch_rows(one_case);
  if (rows.empty()) return section;
  section.items.push_back(open_batch_table(rows));
  if (auto sizes = batch_sizes_table(rows); !sizes.rows.empty()) section.items.push_back(std::move(sizes));
  if (auto reasons = recompile_reasons(rows); !reasons.rows.empty())
    section.items.push_back(document::Details{"Why levels compiled again, as they report it", {std::move(reasons)}});
  return section;
}

}  // namespace strata::report
