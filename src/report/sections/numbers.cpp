// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "report/format.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"
#include "report/sections/total_cost.hpp"
#include "report/settings.hpp"

namespace strata::report {
namespace {

using document::Text;

document::Table all_times_table(const std::vector<const analysis::RowResult*>& rows, bool is_training) {
  using analysis::TimeSummary;
  document::Table table{.id = "all_times",
                        .title = is_training
                                     ? "Times of one training step, from the caller's host tensor to the host loss"
                                     : "Times of one iteration, from the caller's host tensor to the host result"};
  add_facts<TimeSummary>(table, rows, &analysis::RowResult::end_to_end_ms,
                         {{{.id = "estimate", .title = "estimate"}, &TimeSummary::estimate},
                          {{.id = "median", .title = "median"}, &TimeSummary::median},
                          {{.id = "p90", .title = "p90"}, &TimeSummary::p90},
                          {{.id = "p99", .title = "p99"}, &TimeSummary::p99},
                          {{.id = "minimum", .title = "minimum"}, &TimeSummary::min}},
                         document::NumberFormat::seconds, kSecondsPerMs);
  table.columns.insert(table.columns.end(), {{.id = "samples", .title = "samples"},
                                             {.id = "latency", .title = "run and wait"},
                                             {.id = "inputs_per_s", .title = "inputs a second"},
                                             {.id = "cpu", .title = "CPU time"},
                                             {.id = "against_itself", .title = "against itself"},
                                             left_column("false_alarm", "verdict")});
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto& row = *rows[r];
    auto& cells = table.rows[r];
    cells.push_back(value_cell(member_of(row.end_to_end_ms, &TimeSummary::samples), document::NumberFormat::count));
    cells.push_back(time_cell(member_of(row.latency_ms, &TimeSummary::estimate)));
    cells.push_back(value_cell(row.throughput_per_s, document::NumberFormat::digits));
    cells.push_back(time_cell(row.cpu_ms));
    if (!row.aa) continue;
    cells.push_back(estimate_cell(row.aa->ratio, document::NumberFormat::ratio));
    cells.push_back(verdict_cell(row.aa->verdict));
  }
  return table;
}

document::Table sizes_and_settings(const std::vector<const analysis::RowResult*>& rows) {
  document::Table table{.id = "settings", .title = "Size on disk and settings, as the levels report them"};
  table.columns = {left_column("level", "level"),
                   left_column("what", "what it is"),
                   {.id = "cache", .title = "its cache folder"},
                   {.id = "artefact", .title = "artefact"},
                   left_column("settings", "settings")};
  for (const auto* row : rows) {
    const auto facts = fact_words(*row);
    table.rows.push_back({row->name(), row->title, value_cell(row->disk_bytes, document::NumberFormat::bytes),
                          value_cell(row->artefact_bytes, document::NumberFormat::bytes),
                          settings_words(*row) + (facts.empty() ? "" : "; " + facts)});
  }
  return table;
}

// One level without a number in full: reason, what to do, the end of its log, how to repeat it.
document::Details failure_of(const analysis::RowResult& row) {
  document::Details details{row.name() + ": " + spaced(to_string(row.state)), {Text{row.reason}}};
  if (!row.hint.empty()) details.items.push_back(Text{"What to do: " + row.hint});
  if (!row.log_tail.empty()) {
    details.items.push_back(Text{"The end of its log:"});
    details.items.push_back(Text{row.log_tail, Text::Kind::log});
  }
  if (!row.repeat.empty()) {
    details.items.push_back(Text{"To repeat it:"});
    details.items.push_back(Text{row.repeat, Text::Kind::command});
  }
  return details;
}

}  // namespace

document::Section numbers_section(const analysis::CaseResult& one_case) {
  document::Section section{.id = "numbers", .title = "All numbers", .is_detail = true};
  auto measured = one_case.sorted_rows();
  const auto others =
      std::stable_partition(measured.begin(), measured.end(), [](const auto* row) { return row->is_measured(); });
  const std::vector failed(others, measured.end());
  measured.erase(others, measured.end());
  if (!measured.empty())
    section.items = {all_times_table(measured, one_case.is_training()), sizes_and_settings(measured)};
  if (!failed.empty()) section.items.push_back(Text{"Why levels have no number:"});
  for (const auto* row : failed) section.items.push_back(failure_of(*row));
  return section;
}

}  // namespace strata::report
