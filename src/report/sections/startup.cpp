// SPDX-License-Identifier: Apache-2.0
// From starting a process to the end of its first iteration, and when a longer start has paid back.
#include <algorithm>
#include <cmath>

#include "report/format.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

using analysis::StartUp;

document::Table startup_table(const std::vector<const analysis::RowResult*>& rows) {
  document::Table table{.id = "startup_values", .title = "From starting the process to the end of the first iteration"};
  add_facts<StartUp>(table, rows, &analysis::RowResult::startup,
                     {{{.id = "process", .title = "process"}, &StartUp::process_ms},
                      {{.id = "library", .title = "libraries"}, &StartUp::library_ms},
                      {{.id = "load", .title = "load"}, &StartUp::load_ms},
                      {{.id = "build", .title = "of it the network"}, &StartUp::build_ms},
                      {{.id = "weights", .title = "of it the weights"}, &StartUp::weights_ms},
                      {{.id = "first_iteration", .title = "first iteration"}, &StartUp::first_iteration_ms},
                      {{.id = "warm_start", .title = "warm start"}, &StartUp::warm_start_ms},
                      {{.id = "prepare", .title = "prepare"}, &StartUp::prepare_ms},
                      {{.id = "cold_start", .title = "cold start"}, &StartUp::cold_start_ms}},
                     document::NumberFormat::seconds, kSecondsPerMs);
  return table;
}

document::BarPart start_part(const char* name, const std::vector<const analysis::RowResult*>& rows,
                             analysis::OptionalNumber StartUp::*member) {
  return {name, values_of(
                    rows, [&](const auto& row) { return member_of(row.startup, member); }, kSecondsPerMs)};
}

document::Bars warm_start(const std::vector<const analysis::RowResult*>& rows) {
  return {.id = "warm_start",
          .title = "Warm start: from caches, to the end of the first iteration",
          .rows = names_of(rows),
          .parts = {start_part("process", rows, &StartUp::process_ms),
                    start_part("libraries", rows, &StartUp::library_ms), start_part("load", rows, &StartUp::load_ms),
                    start_part("first iteration", rows, &StartUp::first_iteration_ms)},
          .scale = {.title = "time", .format = document::NumberFormat::seconds},
          .table = startup_table(rows)};
}

document::Bars cold_start(const std::vector<const analysis::RowResult*>& rows) {
  auto prepare = start_part("prepare: capture, compile", rows, &StartUp::prepare_ms),
       rest = start_part("everything else", rows, &StartUp::cold_start_ms);
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (std::isfinite(prepare.values[r])) rest.values[r] -= prepare.values[r];
  return {.id = "cold_start",
          .title = "Cold start: nothing in a cache, preparation included",
          .rows = names_of(rows),
          .parts = {std::move(prepare), std::move(rest)},
          .scale = {.title = "time", .format = document::NumberFormat::seconds}};
}

document::Cell break_even_iterations(const analysis::BreakEven& even) {
  if (even.never) return "never";
  if (!even.iterations) return document::Absent{even.inconclusive ? "inconclusive" : ""};
  if (*even.iterations < 1) return "at once";
  return estimate_cell({even.iterations, even.low, even.high}, document::NumberFormat::count);
}

document::Table break_even_table(const std::vector<const analysis::RowResult*>& rows) {
  document::Table table{.id = "break_even", .title = "Break-even"};
  table.columns = {left_column("level", "level"),
                   {.id = "iterations", .title = "iterations (99% CI)"},
                   {.id = "time", .title = "time"}};
  for (const auto* row : rows) {
    if (!row->break_even) continue;
    const auto& even = *row->break_even;
    const bool pays_back = !even.never && even.iterations && *even.iterations >= 1;
    const auto ms = pays_back ? row->estimate_ms() : std::nullopt;
    table.rows.push_back(
        {row->name(), break_even_iterations(even),
         value_cell(ms, document::NumberFormat::seconds, kSecondsPerMs * even.iterations.value_or(0))});
  }
  table.note =
      "Iterations after which a longer warm start has paid back against the reference, and the time "
      "that they take.";
  return table;
}

}  // namespace

document::Section startup_section(const analysis::CaseResult& one_case) {
  document::Section section{.id = "startup", .title = "Start-up and break-even", .is_detail = true};
  const auto rows = drawn_rows(one_case);
  if (rows.empty()) return section;
  section.items = {warm_start(rows), cold_start(rows)};
  if (auto table = break_even_table(rows); !table.rows.empty()) section.items.push_back(std::move(table));
  return section;
}

}  // namespace strata::report
