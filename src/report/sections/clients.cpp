// SPDX-License-Identifier: Apache-2.0
#include "report/clients.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "analysis/reliability.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

document::Cell p99_cell(const analysis::Estimate& p99) {
  auto cell = time_cell(p99.value);
  // Without an upper end the highest of the few values says little about the quantile.
  if (auto* number = std::get_if<document::Number>(&cell); number && !p99.high) number->mark = "?";
  return cell;
}

std::vector<document::Cell> point_cells(const analysis::ClientPoint& point, bool reliable) {
  if (!point.is_measured()) return std::vector<document::Cell>(7, absent_for(point.state, point.reason));
  std::vector<document::Cell> cells(4, document::Absent{analysis::kNotReliable});
  if (reliable) {
    const auto latency = point.latency_ms.value_or(analysis::LatencyQuantiles());
    cells = {estimate_cell(point.inputs_per_s, document::NumberFormat::digits), time_cell(latency.p50.value),
             time_cell(latency.p90.value), p99_cell(latency.p99)};
  }
  cells.push_back(time_cell(point.cpu_ms));
  for (const auto bytes : {&analysis::ServingMemory::private_bytes, &analysis::ServingMemory::pss_bytes})
    cells.push_back(value_cell(member_of(point.memory, bytes), document::NumberFormat::bytes));
  return cells;
}

// `served`: rows with `clients`.
document::Table clients_table(const std::vector<const analysis::RowResult*>& served) {
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
  for (const auto* row : served)
    for (const auto& point : row->clients->points) {
      auto& cells =
          table.rows.emplace_back(std::vector<document::Cell>{row->name(), clients_name(point.clients, point.as)});
      auto numbers = point_cells(point, row->clients->reliable);
      std::move(numbers.begin(), numbers.end(), std::back_inserter(cells));
    }
  table.note =
      "Each client sends its next request when its last one is answered. Processor time is that of one request. Memory "
      "is private, summed over processes. ?: "
      "too few requests to bound the p99.";
  return table;
}

document::Line line_of_clients(const std::string& level, const analysis::Clients& clients, std::string_view as) {
  const bool processes = as == "processes";
  document::Line line{
      .name = level + (processes ? ", processes" : ""), .group = level, .dashed = processes, .shows_labels = true};
  for (const auto& point : clients.points) {
    if (!point.is_measured() || !clients.reliable || point.as != as || !point.inputs_per_s || !point.latency_ms)
      continue;
    const auto rate = point.inputs_per_s->value, p99 = point.latency_ms->p99.value;
    if (!rate || !p99) continue;
    line.x.push_back(*rate);
    line.y.push_back(kSecondsPerMs * *p99);
    line.labels.push_back(std::to_string(point.clients));
  }
  return line;
}

}  // namespace

document::Section clients_section(const analysis::CaseResult& one_case) {
  document::Section section{.id = "clients", .title = "Several clients at once"};
  auto served = one_case.sorted_rows();
  std::erase_if(served, [](const auto* row) { return !row->clients; });
  auto table = clients_table(served);
  if (table.rows.empty()) return section;
  document::Panel panel{
      .x = {.title = "inputs a second", .from_zero = true},
      .y = {.title = "p99 of a request", .format = document::NumberFormat::seconds, .from_zero = true}};
  for (const auto* row : served)
    for (const char* as : {"threads", "processes"})
      if (auto line = line_of_clients(row->name(), *row->clients, as); !line.x.empty())
        panel.lines.push_back(std::move(line));
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
