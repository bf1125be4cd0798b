// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <functional>
#include <vector>

#include "report/sweep_sections.hpp"

namespace strata::report {
namespace {

using analysis::CellLevel;
using analysis::GridCell;

constexpr std::array kShownMeters{
    ShownMeter{.which = core::Metric::cpu_utilisation,
               .id = "cpu_utilisation",
               .title = "processors used",
               .format = document::NumberFormat::percent,
               .note = "Processor time over the time of the iterations and the threads that were asked for."},
    ShownMeter{.which = core::Metric::run_queue_wait,
               .id = "run_queue_wait",
               .title = "waiting for a processor",
               .format = document::NumberFormat::seconds,
               .factor = 1e-3,
               .note = "Of one iteration, all threads together."},
    ShownMeter{.which = core::Metric::page_faults,
               .id = "page_faults",
               .title = "page faults of an iteration",
               .format = document::NumberFormat::digits,
               .note = "Pages that the kernel gave or mapped."},
    ShownMeter{.which = core::Metric::disk_page_faults,
               .id = "disk_page_faults",
               .title = "page faults from disk of an iteration",
               .format = document::NumberFormat::digits,
               .note = "Pages that had to be read from a disk."},
    ShownMeter{.which = core::Metric::switched_out,
               .id = "switched_out",
               .title = "times switched out in an iteration",
               .format = document::NumberFormat::digits,
               .note = "Times that the kernel took a processor away."},
    ShownMeter{.which = core::Metric::energy,
               .id = "energy",
               .title = "energy of an iteration",
               .unit = "J",
               .format = document::NumberFormat::digits,
               .note = "Of the whole processor while the level had its turn."},
};

// A column of the table.
struct MeterColumn {
  document::Column head;
  std::function<document::Cell(const GridCell&, const CellLevel&)> cell;
};

MeterColumn memory_column(const char* id, const char* title, std::optional<double> CellLevel::*bytes,
                          const char* why_not) {
  return {{.id = id, .title = title}, [bytes, why_not](const GridCell&, const CellLevel& level) {
            return document::number_cell(level.*bytes, document::NumberFormat::bytes, why_not);
          }};
}

std::vector<MeterColumn> meter_columns() {
  std::vector<MeterColumn> all;
  all.push_back(
      {{.id = "throughput", .title = "throughput", .unit = "samples/s"},
       [](const GridCell& cell, const CellLevel& level) { return document::Cell{throughput_of(cell, level)}; }});
  for (const auto& meter : kShownMeters)
    all.push_back({{.id = meter.id, .title = meter.title, .unit = meter.unit},
                   [&meter](const GridCell&, const CellLevel& level) { return meter_cell(level, meter); }});
  const char* not_alone = "not in a process of its own at this point";
  all.push_back(memory_column("steady_memory", "steady memory", &CellLevel::steady_bytes, not_alone));
  all.push_back(memory_column("share_memory", "with its share of files (PSS)", &CellLevel::share_bytes, not_alone));
  all.push_back(
      memory_column("device_memory", "peak memory of the GPU", &CellLevel::device_bytes, "no level reports it"));
  return all;
}

// Of a column that has no number: its cells' reason, if all agree on one.
std::string why_no_column(const MeterColumn& column,
                          const std::vector<std::pair<const GridCell*, const CellLevel*>>& shown) {
  std::string why;
  for (const auto& [cell, level] : shown) {
    const auto value = column.cell(*cell, *level);
    const auto* absent = std::get_if<document::Absent>(&value);
    if (!absent) return {};
    if (why.empty()) why = absent->reason;
    if (why != absent->reason) return column.head.title + " (for several reasons)";
  }
  return why.empty() ? column.head.title : fmt::format("{} ({})", column.head.title, why);
}

}  // namespace

std::span<const ShownMeter> shown_meters() {
  return kShownMeters;
}

document::Cell meter_cell(const CellLevel& level, const ShownMeter& meter) {
  const auto it = level.meters.find(meter.which);
  if (it == level.meters.end()) return document::Absent{};
  if (!it->second.value) return document::Absent{it->second.why_not};
  return document::Number{.value = meter.factor * *it->second.value, .format = meter.format};
}

document::Section sweep_meters(const analysis::Grid& grid) {
  document::Section section{.id = "meters", .title = "Resource use"};
  std::vector<std::pair<const GridCell*, const CellLevel*>> shown;
  document::Table table{.id = "meters", .title = "Processors, memory and energy of an iteration"};
  table.columns.push_back({.id = "point", .title = "point", .align = document::Align::left});
  for (const auto& axis : grid.axes) table.columns.push_back({.id = axis.name, .title = axis.name});
  table.columns.push_back({.id = "level", .title = "level", .align = document::Align::left});
  for (const auto& cell : grid.cells)
    for (const auto& name : grid.levels) {
      const auto* level = level_in(&cell, name);
      if (!level || level->state != State::measured) continue;
      shown.emplace_back(&cell, level);
      std::vector<document::Cell> row{cell.run_case ? cell.run_case->id : std::string()};
      for (const auto& value : cell.at) row.emplace_back(value);
      row.emplace_back(name);
      table.rows.push_back(std::move(row));
    }
  if (shown.empty()) return section;
  std::vector<std::string> missing;
  for (const auto& column : meter_columns()) {
    if (auto why = why_no_column(column, shown); !why.empty()) {
      missing.push_back(std::move(why));
      continue;
    }
    table.columns.push_back(column.head);
    for (std::size_t i = 0; i < shown.size(); ++i)
      table.rows[i].push_back(column.cell(*shown[i].first, *shown[i].second));
  }
  table.note =
      "Means over the iterations of all turns, all threads and processes of a level; what is not recorded is counted "
      "too, as the first iterations of a turn. Memory is that of a process in which the level was alone.";
  if (!missing.empty()) table.note += fmt::format(" Not shown: {}.", fmt::join(missing, "; "));
  section.items.push_back(std::move(table));
  return section;
}

}  // namespace strata::report
