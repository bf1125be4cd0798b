// SPDX-License-Identifier: Apache-2.0
// From starting a process to the end of its first iteration, and when a longer start has paid back.
#include <algorithm>
#include <cmath>

#include "report/format.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

document::Table startup_table(const std::vector<const Json*>& rows) {
  document::Table table{.id = "startup_values", .title = "From starting the process to the end of the first iteration"};
  table.columns = {left_column("level", "level"),
                   {.id = "process_ms", .title = "process"},
                   {.id = "library_ms", .title = "libraries"},
                   {.id = "load_ms", .title = "load"},
                   {.id = "build_ms", .title = "of it the network"},
                   {.id = "weights_ms", .title = "of it the weights"},
                   {.id = "first_iteration_ms", .title = "first iteration"},
                   {.id = "warm_start_ms", .title = "warm start"},
                   {.id = "prepare_ms", .title = "prepare"},
                   {.id = "cold_start_ms", .title = "cold start"}};
  for (const Json* row : rows) {
    std::vector<document::Cell> cells{level_name(*row)};
    for (std::size_t c = 1; c < table.columns.size(); ++c)
      cells.push_back(time_cell(*row, "startup." + table.columns[c].id));
    table.rows.push_back(std::move(cells));
  }
  for (auto& column : table.columns)
    if (const auto end = column.id.find("_ms"); end != std::string::npos) column.id.erase(end);
  return table;
}

document::Bars warm_start(const std::vector<const Json*>& rows) {
  const auto part = [&](const char* name, const char* path) {
    return document::BarPart{name, values_of(rows, path, kSecondsPerMs)};
  };
  return {.id = "warm_start",
          .title = "Warm start: from caches, to the end of the first iteration",
          .rows = names_of(rows),
          .parts = {part("process", "startup.process_ms"), part("libraries", "startup.library_ms"),
                    part("load", "startup.load_ms"), part("first iteration", "startup.first_iteration_ms")},
          .scale = {.title = "time", .format = document::Format::seconds},
          .table = startup_table(rows)};
}

document::Bars cold_start(const std::vector<const Json*>& rows) {
  document::BarPart prepare{"prepare: capture, compile", values_of(rows, "startup.prepare_ms", kSecondsPerMs)};
  document::BarPart rest{"everything else", values_of(rows, "startup.cold_start_ms", kSecondsPerMs)};
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (std::isfinite(prepare.values[r])) rest.values[r] -= prepare.values[r];
  return {.id = "cold_start",
          .title = "Cold start: nothing in a cache, preparation included",
          .rows = names_of(rows),
          .parts = {std::move(prepare), std::move(rest)},
          .scale = {.title = "time", .format = document::Format::seconds}};
}

document::Cell break_even_iterations(const Json& break_even) {
  const auto iterations = number(break_even, "iterations");
  if (flag(break_even, "never")) return "never";
  if (!iterations) return document::Absent{flag(break_even, "inconclusive") ? "inconclusive" : ""};
  if (*iterations < 1) return "at once";
  document::Number cell{.value = *iterations, .format = document::Format::count};
  const auto low = number(break_even, "low"), high = number(break_even, "high");
  if (low && high) cell.low = low, cell.high = high;
  return cell;
}

document::Table break_even_table(const std::vector<const Json*>& rows) {
  document::Table table{.id = "break_even", .title = "Break-even"};
  table.columns = {left_column("level", "level"),
                   {.id = "iterations", .title = "iterations (99% CI)"},
                   {.id = "time", .title = "time"}};
  for (const Json* row : rows) {
    const Json& break_even = at(*row, "break_even");
    if (!break_even.is_object()) continue;
    const auto iterations = number(break_even, "iterations"), ms = number(*row, "end_to_end_ms.estimate");
    const bool pays_back = !flag(break_even, "never") && iterations && *iterations >= 1 && ms;
    const auto seconds = pays_back ? std::optional(kSecondsPerMs * *iterations * *ms) : std::nullopt;
    table.rows.push_back({level_name(*row), break_even_iterations(break_even),
                          document::number_cell(seconds, document::Format::seconds)});
  }
  table.note =
      "Iterations after which a longer warm start has paid back against the reference, and the time "
      "that they take.";
  return table;
}

}  // namespace

document::Section startup_section(const Json& one_case) {
  document::Section section{.id = "startup", .title = "Start-up and break-even", .is_detail = true};
  const auto rows = drawn_rows(one_case);
  if (rows.empty()) return section;
  section.items = {warm_start(rows), cold_start(rows)};
  if (auto table = break_even_table(rows); !table.rows.empty()) section.items.push_back(std::move(table));
  return section;
}

}  // namespace strata::report
