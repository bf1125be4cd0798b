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

std::string path_of(const char* phase) {
  return std::string("phases.ms.") + phase;
}

// The phase that another one's time is part of; "" if it stands alone.
std::string held_by(const Json& row, const std::string& phase) {
  const auto& joined = at(row, "phases.joined");
  if (joined.is_object())
    for (const auto& [holder, held] : joined.items())
      if (holder != phase && std::find(held.begin(), held.end(), Json(phase)) != held.end()) return holder;
  return "";
}

}  // namespace

document::Section phases_section(const Json& one_case) {
  document::Section section{.id = "phases", .title = "Phases of a training step"};
  const auto rows = drawn_rows(one_case);
  if (!is_training(one_case) || rows.empty()) return section;
  const auto shown = [&](const char* phase) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const Json* row) { return number(*row, path_of(phase)) || !held_by(*row, phase).empty(); });
  };
  document::Table table{.id = "phase_times", .title = "Throughput, and the median of each phase in a pass of its own"};
  table.columns = {left_column("level", "level"),
                   {.id = "samples_per_s", .title = "samples/s"},
                   {.id = "steps_per_s", .title = "steps/s"}};
  for (const auto& [phase, title] : kPhases)
    if (shown(phase)) table.columns.push_back({.id = phase, .title = title});
  for (const Json* row : rows) {
    std::vector<document::Cell> cells{level_name(*row), value_cell(*row, "throughput_per_s", document::Format::digits),
                                      value_cell(*row, "steps_per_s", document::Format::digits)};
    for (const auto& [phase, title] : kPhases) {
      if (!shown(phase)) continue;
      const auto holder = held_by(*row, phase);
      const bool known = number(*row, path_of(phase)).has_value();
      cells.push_back(known || holder.empty() ? time_cell(*row, path_of(phase)) : document::Cell{"in " + holder});
    }
    table.rows.push_back(std::move(cells));
  }
  section.items.push_back(std::move(table));
  return section;
}

}  // namespace strata::report
