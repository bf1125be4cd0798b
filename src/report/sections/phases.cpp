// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 6> kPhases{{{"input", "input"},
                                                                      {"to_device", "to device"},
                                                                      {"forward", "forward"},
                                                                      {"loss", "loss"},
                                                                      {"backward", "backward"},
                                                                      {"update", "update"}}};

analysis::OptionalNumber phase_ms(const analysis::RowResult& row, const std::string& phase) {
  if (!row.phases) return std::nullopt;
  const auto time = row.phases->ms.find(phase);
  return time == row.phases->ms.end() ? std::nullopt : time->second;
}

// The phase that another one's time is part of; "" if it stands alone.
std::string held_by(const analysis::RowResult& row, const std::string& phase) {
  if (row.phases)
    for (const auto& [holder, held] : row.phases->joined)
      if (holder != phase && std::find(held.begin(), held.end(), phase) != held.end()) return holder;
  return "";
}

}  // namespace

document::Section phases_section(const analysis::CaseResult& one_case) {
  document::Section section{.id = "phases", .title = "Phases of a training step"};
  const auto rows = drawn_rows(one_case);
  if (!one_case.is_training() || rows.empty()) return section;
  const auto shown = [&](const char* phase) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const auto* row) { return phase_ms(*row, phase) || !held_by(*row, phase).empty(); });
  };
  document::Table table{.id = "phase_times", .title = "Throughput, and the median of each phase in a pass of its own"};
  table.columns = {left_column("level", "level"),
                   {.id = "samples_per_s", .title = "samples/s"},
                   {.id = "steps_per_s", .title = "steps/s"}};
  for (const auto& [phase, title] : kPhases)
    if (shown(phase)) table.columns.push_back({.id = phase, .title = title});
  for (const auto* row : rows) {
    std::vector<document::Cell> cells{row->name(), value_cell(row->throughput_per_s, document::NumberFormat::digits),
                                      value_cell(row->steps_per_s, document::NumberFormat::digits)};
    for (const auto& [phase, title] : kPhases) {
      if (!shown(phase)) continue;
      const auto holder = held_by(*row, phase);
      const auto ms = phase_ms(*row, phase);
      cells.push_back(ms || holder.empty() ? time_cell(ms) : document::Cell{"in " + holder});
    }
    table.rows.push_back(std::move(cells));
  }
  section.items.push_back(std::move(table));
  return section;
}

}  // namespace strata::report
