// SPDX-License-Identifier: Apache-2.0
#include "report/first_screen.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

document::Cell measured_time(const analysis::RowResult& row) {
  auto cell = time_cell(row.estimate_ms());
  if (auto* number = std::get_if<document::Number>(&cell); number && row.end_to_end_ms->is_median) number->mark = "*";
  return cell;
}

document::Cell speedup_of(const LevelLine& level) {
  const bool has_number = level.ratio != "harness" && level.ratio != "reference";
  return has_number ? estimate_cell(level.row->ratio, document::NumberFormat::ratio) : document::Cell{level.ratio};
}

document::Table levels_table(const FirstScreen& screen) {
  document::Table table{.id = "levels", .title = "Levels with a number, from Python downwards; peers and harness last"};
  table.columns = {left_column("level", "level"),
                   {.id = "time", .title = "time", .has_bars = true},
                   {.id = "speedup", .title = "speedup (99% CI)"},
                   left_column("verdict", "verdict")};
  if (screen.has_tuned) table.columns.push_back({.id = "tuned", .title = "tuned against tuned"});
  table.columns.push_back({.id = "p99", .title = "p99"});
  table.columns.push_back({.id = "memory", .title = "memory"});
  if (screen.has_device_memory) table.columns.push_back({.id = "gpu_memory", .title = "GPU memory"});
  table.columns.push_back({.id = "warm_start", .title = "warm start"});
  table.columns.push_back(left_column("proof", "proof"));
  for (const auto& level : screen.levels) {
    const auto& row = *level.row;
    std::vector<document::Cell> cells;
    cells.push_back(level.recommended
                        ? document::Cell{document::Word{level.name + " (recommended)", document::Tone::strong}}
                        : document::Cell{level.name});
    cells.push_back(measured_time(row));
    cells.push_back(speedup_of(level));
    cells.push_back(row.ratio && !level.harness ? verdict_cell(row.ratio->verdict, row.ratio->same_within_percent)
                                                : document::Absent{});
    if (screen.has_tuned) cells.emplace_back(level.tuned);
    cells.push_back(time_cell(member_of(row.end_to_end_ms, &analysis::TimeSummary::p99)));
    cells.push_back(value_cell(row.peak_private_bytes(), document::NumberFormat::bytes));
    if (screen.has_device_memory)
      cells.push_back(
          value_cell(member_of(row.memory, &analysis::MemoryFacts::device_peak_bytes), document::NumberFormat::bytes));
    cells.push_back(time_cell(row.warm_start_ms()));
    cells.emplace_back(level.proof);
    table.rows.push_back(std::move(cells));
  }
  table.note = screen.proof_note;
  return table;
}

document::Table without_table(const FirstScreen& screen) {
  document::Table table{.id = "without", .title = "Levels without a number"};
  table.columns = {left_column("levels", "levels"), left_column("state", "state"), left_column("why", "why")};
  for (const auto& empty : screen.without) table.rows.push_back({empty.names, empty.state, empty.reason});
  table.note = screen.state_note;
  return table;
}

}  // namespace

document::Section result_section(const analysis::RunResult& run, const analysis::CaseResult& one_case) {
  const auto screen = first_screen(run, one_case, glyphs(true));
  document::Section section{.id = "result"};
  if (!screen.levels.empty()) section.items.push_back(levels_table(screen));
  if (!screen.without.empty()) section.items.push_back(without_table(screen));
  document::Facts facts, about;
  if (!screen.doubt.empty()) facts.facts.push_back({.name = "Doubt", .value = screen.doubt});
  if (!screen.limit.empty()) facts.facts.push_back({.name = screen.limit_title, .value = screen.limit});
  facts.facts.push_back({.name = "Trust", .value = screen.trust});
  if (!screen.next.empty()) facts.facts.push_back({.name = "Next", .value = screen.next, .is_command = true});
  section.items.push_back(std::move(facts));
  for (const auto& [level, title] : screen.about) about.facts.push_back({.name = level, .value = title});
  if (about.facts.empty()) return section;
  section.items.push_back(document::Text{"What the levels are:"});
  section.items.push_back(std::move(about));
  return section;
}

}  // namespace strata::report
