// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/format.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

// Of a row that has `tuning`.
std::vector<document::Cell> variant_cells(const analysis::RowResult& row, const analysis::TriedVariant& tried) {
  const auto name = core::ParticipantId{row.level, tried.variant, row.environment}.name();
  const bool best = tried.variant == row.tuning->best;
  const auto first =
      best ? document::Cell{document::Word{name + " (best)", document::Tone::strong}} : document::Cell{name};
  const auto what = tried.variant == "default" ? "the level as it is" : tried.title;
  if (tried.state != "measured") {
    const auto why = absent_for(tried.state, tried.reason);
    return {first, why, why, why, what};
  }
  const auto compared = tried.ratio.value_or(analysis::JudgedRatio());
  return {first, time_cell(tried.median_ms), estimate_cell(compared, document::NumberFormat::ratio),
          compared.value ? verdict_cell(compared.verdict) : document::Absent{}, what};
}

// Adds a level to those that had nothing to try for the same reason.
void add_untried(std::vector<std::pair<std::string, std::string>>& levels, const analysis::RowResult& row,
                 const std::string& note) {
  const auto alike =
      std::find_if(levels.begin(), levels.end(), [&](const auto& level) { return level.second == note; });
  if (alike == levels.end())
    levels.emplace_back(row.name(), note);
  else
    alike->first += ", " + row.name();
}

}  // namespace

document::Section tuning_section(const analysis::CaseResult& one_case) {
  document::Section section{.id = "tuning", .title = "What was tried to find each level's best variant"};
  document::Table table{.id = "variants", .title = "Variants tried"};
  table.columns = {left_column("variant", "variant tried"),
                   {.id = "time", .title = "time"},
                   {.id = "speedup", .title = "speedup over the first (99% CI)"},
                   left_column("verdict", "verdict"),
                   left_column("what", "what it is")};
  std::vector<std::pair<std::string, std::string>> untried;
  for (const auto* row : one_case.sorted_rows()) {
    if (!row->tuning) continue;
    const auto& tuning = *row->tuning;
    if (!tuning.note.empty()) add_untried(untried, *row, tuning.note);
    for (const auto& tried : tuning.tried) table.rows.push_back(variant_cells(*row, tried));
    if (table.note.empty() && !table.rows.empty() && tuning.seconds && tuning.restarts)
      table.note = fmt::format(
          "Each level had {} in {} {} for all of its variants; what was chosen is measured afresh.",
          duration(*tuning.seconds * 1e3), count(*tuning.restarts), *tuning.restarts == 1 ? "restart" : "restarts");
  }
  if (!table.rows.empty()) section.items.push_back(std::move(table));
  for (const auto& [names, note] : untried) section.items.push_back(document::Text{names + ": " + note});
  return section;
}

}  // namespace strata::report
