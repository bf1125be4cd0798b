// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <set>

#include "report/format.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

// Their `dynamic` is there.
std::vector<const analysis::RowResult*> open_batch_rows(const analysis::CaseResult& one_case) {
  auto rows = one_case.sorted_rows();
  std::erase_if(rows, [](const auto* row) { return !row->dynamic; });
  return rows;
}

std::vector<document::Cell> open_batch_cells(const analysis::RowResult& row) {
  const auto& open = *row.dynamic;
  std::vector<document::Cell> cells{row.name()};
  if (!open.is_measured()) {
    cells.insert(cells.end(), 5, absent_for(open.state, open.reason));
    return cells;
  }
  const auto against = open.against_fixed ? open.against_fixed->ratio : analysis::JudgedRatio();
  const document::Absent why{first_sentence(open.against_fixed_note)};
  const int recompiled = open.recompiled.value_or(0);
  cells.emplace_back(fmt::format("{} of {}", recompiled, open.unseen.value_or(0)));
  cells.push_back(recompiled > 0 ? time_cell(open.recompile_ms) : document::Absent{});
  cells.push_back(against.value ? estimate_cell(against, document::NumberFormat::ratio) : document::Cell{why});
  cells.push_back(against.value ? verdict_cell(against.verdict) : document::Cell{why});
  cells.push_back(time_cell(open.prepare_ms));
  return cells;
}

document::Table open_batch_table(const std::vector<const analysis::RowResult*>& rows) {
  document::Table table{.id = "open_batch",
                        .title = "Sizes that a level had not seen, and its time against the fixed size"};
  table.columns = {left_column("level", "level"),
                   {.id = "recompiled", .title = "recompiled"},
                   {.id = "recompile_time", .title = "in all"},
                   {.id = "speedup", .title = "speedup over fixed (99% CI)"},
                   left_column("verdict", "verdict"),
                   {.id = "prepare", .title = "prepare"}};
  for (const auto* row : rows) table.rows.push_back(open_batch_cells(*row));
  return table;
}

// A line for each level, a column for each size: the settled time, and what the first call took longer where it
// compiled.
document::Table batch_sizes_table(const std::vector<const analysis::RowResult*>& rows) {
  std::set<int> batches;
  std::vector<std::pair<std::string, std::map<int, document::Cell>>> times;
  for (const auto* row : rows) {
    if (!row->dynamic->is_measured()) continue;
    auto& [name, of] = times.emplace_back(row->name(), std::map<int, document::Cell>{});
    for (const auto& size : row->dynamic->sizes) {
      batches.insert(size.batch);
      auto cell = time_cell(size.settled_ms);
      if (auto* time = std::get_if<document::Number>(&cell); time && size.recompiled)
        time->mark = "(+" + duration(size.recompile_ms.value_or(0)) + ")";
      of[size.batch] = std::move(cell);
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

document::Table recompile_reasons(const std::vector<const analysis::RowResult*>& rows) {
  document::Table table{.id = "reasons", .title = "Recompilations"};
  table.columns = {left_column("level", "level"), left_column("reason", "reason")};
  for (const auto* row : rows)
    for (const auto& reason : row->dynamic->reported.value_or(analysis::ReportedRecompiles()).reasons)
      table.rows.push_back({row->name(), reason});
  return table;
}

}  // namespace

document::Section dynamic_section(const analysis::CaseResult& one_case) {
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
