// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "analysis/reliability.hpp"
#include "report/format.hpp"
#include "report/run_documents.hpp"
#include "report/run_facts.hpp"
#include "report/shards.hpp"
#include "report/sweep_layout.hpp"
#include "report/sweep_sections.hpp"

namespace strata::report {
namespace {

using analysis::Grid;

document::Cell cell_or_absent(const document::Number& number) {
  return std::isfinite(number.value) ? document::Cell{number} : document::Cell{document::Absent{}};
}

document::Section everything(const Grid& grid) {
  document::Table table{.id = "points", .title = "Every point"};
  table.columns.push_back({.id = "point", .title = "point", .align = document::Align::left});
  for (const auto& axis : grid.axes) table.columns.push_back({.id = axis.name, .title = axis.name});
  table.columns.insert(table.columns.end(), {{.id = "level", .title = "level", .align = document::Align::left},
                                             {.id = "state", .title = "state", .align = document::Align::left},
                                             {.id = "sample_time", .title = "time of a sample"},
                                             {.id = "speedup", .title = "speedup"},
                                             {.id = "processor_speedup", .title = "by processor time"},
                                             {.id = "peak_memory", .title = "peak memory"},
                                             {.id = "reason", .title = "why", .align = document::Align::left}});
  for (const auto& cell : grid.cells)
    for (const auto& name : grid.levels) {
      const auto it = cell.levels.find(name);
      if (it == cell.levels.end()) continue;
      const auto& level = it->second;
      std::vector<document::Cell> row{cell.run_case->id};
      for (const auto& value : cell.at) row.emplace_back(value);
      row.emplace_back(name);
      row.emplace_back(to_string(level.state));
      row.push_back(cell_or_absent(sample_time_of(cell, level)));
      row.push_back(cell.reliable ? cell_or_absent(number_of(level.speedup, document::NumberFormat::ratio))
                                  : document::Cell{document::Absent{analysis::kNotReliable}});
      row.push_back(cell_or_absent(number_of(level.processor_speedup, document::NumberFormat::ratio)));
      row.push_back(
          document::number_cell(level.peak_bytes, document::NumberFormat::bytes,
                                level.expected_bytes ? "foreseen: " + size(*level.expected_bytes) : std::string()));
      row.emplace_back(level.reason);
      table.rows.push_back(std::move(row));
    }
  table.note = fmt::format(
      "Times with the 99% interval of their restarts, speedup over {} with that of the interleaved comparison. ?: not "
      "reliable, since other programs had the processors; what the speedup is by processor time stands beside it. "
      "Memory is that of a level alone; where it was not measured, it is foreseen from the other points.",
      grid.reference);
  return {.id = "points", .title = "Points", .items = {table}};
}

std::string axes_words(const Grid& grid) {
  std::vector<std::string> words;
  for (const auto& axis : grid.axes) words.push_back(fmt::format("{} {}", axis.name, fmt::join(axis.values, ", ")));
  return fmt::format("{}", fmt::join(words, "; "));
}

// What is not there, and what is about the whole run.
void add_warnings(const store::Run& run, document::Section& section) {
  const auto without = std::count_if(run.warnings.begin(), run.warnings.end(),
                                     [](const store::Warning& warning) { return warning.id == "W009"; });
  const auto reached = static_cast<double>(run.cases.size()) + static_cast<double>(without);
  if (const auto planned = static_cast<double>(run.settings.cases.value_or(0)); planned > reached)
    section.items.push_back(
        document::Text{fmt::format("{:.0f} of {:.0f} points were reached; {}", reached, planned, how_to_go_on(run)),
                       document::Text::Kind::warning});
  for (const auto& warning : run.warnings)
    if (warning.case_key.empty())
      section.items.push_back(document::Text{fmt::format("{}: {}. {}", warning.id, warning.what, warning.advice),
                                             document::Text::Kind::warning});
}

}  // namespace

bool is_sweep(const store::Run& run) {
  return run.settings.verb == "sweep";
}

document::Document sweep_document(const store::Run& run) {
  const auto grid = analysis::grid_of(run);
  const SweepLayout layout(grid);
  document::Document out;
  out.title = "strata sweep: " + (run.cases.empty() ? std::string("no point") : run.cases.front().question.model);
  out.subtitle = axes_words(grid);
  out.summary = sweep_summary(grid);
  if (auto batch = best_batch(run, grid)) {
    out.summary = std::move(batch->sentence);
    out.sections.push_back(std::move(batch->section));
  }
  out.summary = ending_words(run) + out.summary;
  document::Section fastest{.id = "fastest", .title = "Fastest level"};
  const bool decided =
      std::any_of(grid.cells.begin(), grid.cells.end(), [](const auto& cell) { return !cell.best.empty(); });
  if (decided)
    for (auto& map : sweep_winners(grid, layout)) fastest.items.push_back(std::move(map));
  add_warnings(run, fastest);
  if (decided) {
    fastest.items.push_back(standings_table(grid));
    fastest.items.push_back(document::Text{sweep_error_rates()});
  }
  if (!fastest.items.empty()) out.sections.push_back(std::move(fastest));
  if (decided) {
    if (auto crossings = crossings_table(grid); !crossings.rows.empty())
      out.sections.push_back({.id = "crossings", .title = "Crossings", .items = {std::move(crossings)}});
    for (auto& section : {sweep_lines(grid, layout), sweep_surfaces(grid, layout), sweep_time_and_memory(grid, layout),
                          sweep_meters(grid)})
      if (!section.items.empty()) out.sections.push_back(section);
  }
  out.sections.push_back(everything(grid));
  add_machines(out.sections.back(), run);
  if (auto words = run.settings.forecast; !words.empty() && !run.joined) {
    words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
    out.sections.back().items.push_back(document::Text{words + "."});
  }
  if (auto shards = shards_section(run)) out.sections.push_back(std::move(*shards));
  out.facts = run_facts(run);
  out.marks = run_marks(run);
  return out;
}

}  // namespace strata::report
