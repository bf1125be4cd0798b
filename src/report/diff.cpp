// SPDX-License-Identifier: Apache-2.0
#include "report/diff.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/format.hpp"
#include "report/sections/cells.hpp"

namespace strata::report {
namespace {

document::Cell verdict_of(const analysis::LevelDifference& level) {
  analysis::RatioVerdict verdict{};
  return from_string(level.verdict, verdict) ? verdict_cell(verdict) : document::Cell{spaced(level.verdict)};
}

document::Table difference_table(const analysis::DifferenceResult& difference) {
  document::Table table{.id = "levels", .title = "Levels of the earlier run"};
  table.columns = {left_column("level", "level"),
                   left_column("case", "case"),
                   {.id = "before", .title = "before"},
                   {.id = "after", .title = "after"},
                   {.id = "speedup", .title = "speedup (99% CI)"},
                   left_column("verdict", "verdict"),
                   {.id = "speedup_change", .title = "change of its speedup"}};
  for (const auto& level : difference.levels)
    table.rows.push_back(
        {level.name(), level.case_id, time_cell(level.before_ms), time_cell(level.after_ms),
         level.ratio ? estimate_cell(*level.ratio, document::NumberFormat::ratio) : document::Absent{level.reason},
         verdict_of(level), estimate_cell(level.speedup_change, document::NumberFormat::ratio)});
  table.note =
      "Unpaired: the runs were not interleaved, so that a change of the machine counts as one of a level; the "
      "change of a speedup over the reference of its own run does not have it.";
  return table;
}

// "0 of 3 levels slower, 0 faster; 3 of 3 could not be compared: not reliable."
std::string summary_of(const analysis::DifferenceResult& difference) {
  const auto& levels = difference.levels;
  const auto threshold = percent(100 * difference.threshold);
  auto words = fmt::format("{} of {} levels slower", difference.slower, levels.size());
  if (difference.beyond > 0) words += fmt::format(" ({} by more than {})", difference.beyond, threshold);
  words += fmt::format(", {} faster", difference.faster);
  if (difference.open > 0) words += fmt::format("; {} may be slower by more than {}", difference.open, threshold);
  if (levels.empty()) words += "; the earlier run has no number to compare with";
  std::vector<std::string> reasons;  // each once
  for (const auto& level : levels)
    if (const auto why = spaced(level.verdict);
        level.gate == analysis::Gate::not_compared && std::find(reasons.begin(), reasons.end(), why) == reasons.end())
      reasons.push_back(why);
  if (!reasons.empty())
    words += fmt::format("; {} of {} could not be compared: {}", difference.not_compared, levels.size(),
                         fmt::join(reasons, ", "));
  return words + ".";
}

}  // namespace

document::Document difference_document(const analysis::DifferenceResult& difference) {
  document::Document out{.title = fmt::format("strata diff: {}, then {}", difference.before.run, difference.after.run),
                         .summary = summary_of(difference)};
  document::Section section{.id = "levels"};
  for (const auto& note : difference.notes) section.items.push_back(document::Text{note});
  for (const auto& left_out : difference.without)
    section.items.push_back(document::Text{fmt::format("left out: {}: {}", left_out.case_id, left_out.reason)});
  section.items.push_back(difference_table(difference));
  out.sections.push_back(std::move(section));
  return out;
}

}  // namespace strata::report
