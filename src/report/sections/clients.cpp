// SPDX-License-Identifier: Apache-2.0
#include "report/clients.hpp"

#include <string_view>

#include "analysis/reliability.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

bool is_reliable(const Json& row) {
  return at(row, "clients.reliable") != false;
}

document::Cell p99_cell(const Json& point) {
  auto cell = time_cell(point, "latency_ms.p99.value");
  // Without an upper end the highest of the few values says little about the quantile.
  if (auto* number_of_p99 = std::get_if<document::Number>(&cell))
    if (!number(point, "latency_ms.p99.high")) number_of_p99->mark = "?";
  return cell;
}

document::Table clients_table(const Json& one_case) {
  document::Table table{.id = "clients", .title = "Requests in flight"};
  table.columns = {left_column("level", "level"),
                   left_column("in_flight", "in flight"),
                   {.id = "inputs_per_s", .title = "inputs/s"},
                   {.id = "p50", .title = "p50"},
                   {.id = "p90", .title = "p90"},
                   {.id = "p99", .title = "p99"},
                   {.id = "cpu", .title = "processor time"},
                   {.id = "memory", .title = "memory"},
                   {.id = "pss", .title = "PSS"}};
  for (const Json* row : sorted_rows(one_case))
    for (const auto& point : list(*row, "clients.points")) {
      std::vector<document::Cell> cells{level_name(*row),
                                        clients_name(number(point, "clients").value_or(1), text(point, "as"))};
      if (!is_measured(point)) {
        cells.insert(cells.end(), 7, absent_for(text(point, "state"), text(point, "reason")));
      } else {
        if (is_reliable(*row))
          cells.insert(cells.end(), {estimate_cell(at(point, "inputs_per_s"), document::Format::digits),
                                     time_cell(point, "latency_ms.p50.value"), time_cell(point, "latency_ms.p90.value"),
                                     p99_cell(point)});
        else
          cells.insert(cells.end(), 4, document::Absent{analysis::not_reliable});
        cells.insert(cells.end(),
                     {time_cell(point, "cpu_ms"), value_cell(point, "memory.private_bytes", document::Format::bytes),
                      value_cell(point, "memory.pss_bytes", document::Format::bytes)});
      }
      table.rows.push_back(std::move(cells));
    }
  table.note =
      "Each client sends its next request when its last one is answered. Processor time is that of one request. Memory "
      "is private, summed over processes. ?: "
      "too few requests to bound the p99.";
  return table;
}

document::Line line_of_clients(const Json& row, std::string_view as) {
  const auto level = level_name(row);
  const bool processes = as == "processes";
  document::Line line{
      .name = level + (processes ? ", processes" : ""), .group = level, .dashed = processes, .shows_labels = true};
  for (const auto& point : list(row, "clients.points")) {
    const auto rate = number(point, "inputs_per_s.value"), p99 = number(point, "latency_ms.p99.value");
    if (!is_measured(point) || !is_reliable(row) || text(point, "as") != as || !rate || !p99) continue;
    line.x.push_back(*rate);
    line.y.push_back(kSecondsPerMs * *p99);
    line.labels.push_back(text(point, "clients"));
  }
  return line;
}

}  // namespace

document::Section clients_section(const Json& one_case) {
  document::Section section{.id = "clients", .title = "Several clients at once"};
  auto table = clients_table(one_case);
  if (table.rows.empty()) return section;
  document::Panel panel{.x = {.title = "inputs a second", .from_zero = true},
                        .y = {.title = "p99 of a request", .format = document::Format::seconds, .from_zero = true}};
  for (const Json* row : sorted_rows(one_case))
    for (const char* as : {"threads", "processes"})
      if (auto line = line_of_clients(*row, as); !line.x.empty()) panel.lines.push_back(std::move(line));
  section.items.push_back(document::Figure{
      .id = "throughput",
      .title = "Throughput against p99",
      .panels = {std::move(panel)},
      .note =
          "One line a level, from few clients to many, whose number stands at each point; further right and lower is "
          "better. Dashed: processes in place of threads of one process. All on the same cores.",
      .table = std::move(table)});
  return section;
}

}  // namespace strata::report
