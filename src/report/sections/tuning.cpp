// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/format.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

std::vector<document::Cell> variant_cells(const Json& row, const Json& tried) {
  const auto variant = text(tried, "variant");
  const auto name =
      level_name({{"level", text(row, "level")}, {"variant", variant}, {"environment", text(row, "environment")}});
  const bool best = variant == text(row, "tuning.best");
  const auto first =
      best ? document::Cell{document::Word{name + " (best)", document::Tone::strong}} : document::Cell{name};
  const auto what = variant == "default" ? std::string("the level as it is") : text(tried, "title");
  if (!is_measured(tried)) {
    const auto why = absent_for(text(tried, "state"), text(tried, "reason"));
    return {first, why, why, why, what};
  }
  const bool compared = number(tried, "ratio.value").has_value();
  return {first, time_cell(tried, "median_ms"), estimate_cell(at(tried, "ratio"), document::Format::ratio),
          compared ? verdict_cell(at(tried, "ratio")) : document::Absent{}, what};
}

// Adds a level to those that had nothing to try for the same reason.
void add_untried(std::vector<std::pair<std::string, std::string>>& levels, const Json& row, const std::string& note) {
  const auto alike =
      std::find_if(levels.begin(), levels.end(), [&](const auto& level) { return level.second == note; });
  if (alike == levels.end())
    levels.emplace_back(level_name(row), note);
  else
    alike->first += ", " + level_name(row);
}

}  // namespace

document::Section tuning_section(const Json& one_case) {
  document::Section section{.id = "tuning", .title = "What was tried to find each level's best variant"};
  document::Table table{.id = "variants", .title = "Variants tried"};
  table.columns = {left_column("variant", "variant tried"),
                   {.id = "time", .title = "time"},
                   {.id = "speedup", .title = "speedup over the first (99% CI)"},
                   left_column("verdict", "verdict"),
                   left_column("what", "what it is")};
  std::vector<std::pair<std::string, std::string>> untried;
  for (const Json* row : sorted_rows(one_case)) {
    const Json& tuning = at(*row, "tuning");
    if (const auto note = text(tuning, "note"); !note.empty()) add_untried(untried, *row, note);
    for (const auto& tried : list(tuning, "tried")) table.rows.push_back(variant_cells(*row, tried));
    const auto seconds = number(tuning, "seconds"), restarts = number(tuning, "restarts");
    if (table.note.empty() && !table.rows.empty() && seconds && restarts)
      table.note =
          fmt::format("Each level had {} in {} {} for all of its variants; what was chosen is measured afresh.",
                      duration(*seconds * 1e3), count(*restarts), *restarts == 1 ? "restart" : "restarts");
  }
  if (!table.rows.empty()) section.items.push_back(std::move(table));
  for (const auto& [names, note] : untried) section.items.push_back(document::Text{names + ": " + note});
  return section;
}

}  // namespace strata::report
