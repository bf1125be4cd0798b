// SPDX-License-Identifier: Apache-2.0
#include "report/tuning_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/first_screen.hpp"

namespace strata::report {
namespace {

Cells variant_cells(const Json& row, const Json& tried, const Glyphs& glyphs, bool brief) {
  const auto variant = text(tried, "variant");
  auto name =
      level_name({{"level", text(row, "level")}, {"variant", variant}, {"environment", text(row, "environment")}});
  if (variant == text(row, "tuning.best")) name += " (best)";
  const auto what = variant == "default" ? std::string("the level as it is") : text(tried, "title");
  auto state = text(tried, "state");
  std::replace(state.begin(), state.end(), '_', ' ');
  const auto reason = first_sentence(text(tried, "reason"));
  if (state != "measured") {
    if (brief) return {name, state, reason};
    return {name, glyphs.missing, glyphs.missing, state + (reason.empty() ? "" : ": " + reason), what};
  }
  const auto ms = number(tried, "median_ms");
  const bool compared = number(tried, "ratio.value").has_value();
  Cells cells{name, ms ? duration(*ms) : glyphs.missing,
              compared ? ratio_with_interval(at(tried, "ratio"), glyphs) : glyphs.missing,
              compared ? verdict_words(text(tried, "ratio.verdict")) : ""};
  if (!brief) cells.push_back(what);
  return cells;
}

// Adds a level to those that had nothing to try for the same reason.
void add_untried(std::vector<std::pair<std::string, std::string>>& levels, const Json& row, const std::string& note) {
  const auto alike = std::find_if(levels.begin(), levels.end(), [&](const auto& one) { return one.second == note; });
  if (alike == levels.end())
    levels.emplace_back(level_name(row), note);
  else
    alike->first += ", " + level_name(row);
}

}  // namespace

TuningTable tuning_table(const Json& one_case, const Glyphs& glyphs, bool brief) {
  TuningTable out;
  std::vector<std::pair<std::string, std::string>> untried;
  for (const Json* row : sorted_rows(one_case)) {
    const Json& tuning = at(*row, "tuning");
    if (const auto note = text(tuning, "note"); !note.empty()) add_untried(untried, *row, note);
    for (const auto& tried : list(tuning, "tried")) out.rows.push_back(variant_cells(*row, tried, glyphs, brief));
    const auto seconds = number(tuning, "seconds"), restarts = number(tuning, "restarts");
    if (out.note.empty() && !out.rows.empty() && seconds && restarts)
      out.note = fmt::format("Each level had {} in {} {} for all of its variants; what was chosen is measured afresh.",
                             duration(*seconds * 1e3), count(*restarts), *restarts == 1 ? "restart" : "restarts");
  }
  for (const auto& [names, note] : untried) out.untried.push_back(names + ": " + note);
  if (out.rows.empty()) return out;
  out.header = brief ? Cells{"tried", "time", "times as fast", "verdict"}
                     : Cells{"variant tried", "time", "times as fast as the first", "verdict", "what it is"};
  return out;
}

}  // namespace strata::report
