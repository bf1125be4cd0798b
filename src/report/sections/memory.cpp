// SPDX-License-Identifier: Apache-2.0
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

document::Table memory_table(const std::vector<const Json*>& rows) {
  document::Table table{.id = "memory_values", .title = "Memory of a worker by itself"};
  table.columns = {left_column("level", "level"),
                   {.id = "idle_private_bytes", .title = "idle runtime"},
                   {.id = "above_idle_bytes", .title = "above idle"},
                   {.id = "peak_private_bytes", .title = "peak private"},
                   {.id = "steady_private_bytes", .title = "steady private"},
                   {.id = "steady_pss_bytes", .title = "steady share (PSS)"},
                   {.id = "shared_file_bytes", .title = "file pages"},
                   {.id = "device_peak_bytes", .title = "GPU peak"}};
  for (const Json* row : rows) {
    std::vector<document::Cell> cells{level_name(*row)};
    for (std::size_t c = 1; c < table.columns.size(); ++c)
      cells.push_back(value_cell(*row, "memory." + table.columns[c].id, document::Format::bytes));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

document::Section memory_section(const Json& one_case) {
  document::Section section{.id = "memory", .title = "Memory", .is_detail = true};
  const auto rows = drawn_rows(one_case);
  if (rows.empty()) return section;
  section.items.push_back(
      document::Bars{.id = "peak_memory",
                     .title = "Private memory at its peak, alone on the machine",
                     .rows = names_of(rows),
                     .parts = {{"idle runtime", values_of(rows, "memory.idle_private_bytes", 1)},
                               {"network, at its peak", values_of(rows, "memory.above_idle_bytes", 1)}},
                     .marks = {{"steady share with file pages (PSS)", values_of(rows, "memory.steady_pss_bytes", 1)}},
                     .scale = {.title = "memory", .format = document::Format::bytes},
                     .note = "The runtime when idle and what the network adds.",
                     .table = memory_table(rows)});
  return section;
}

}  // namespace strata::report
