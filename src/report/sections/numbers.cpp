// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "report/format.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"
#include "report/sections/total_cost.hpp"
#include "report/settings.hpp"

namespace strata::report {
namespace {

using document::Text;

document::Table all_times_table(const Json& one_case) {
  document::Table table{.id = "all_times",
                        .title = is_training(one_case)
                                     ? "Times of one training step, from the caller's host tensor to the host loss"
                                     : "Times of one iteration, from the caller's host tensor to the host result"};
  table.columns = {left_column("level", "level"),
                   {.id = "estimate", .title = "estimate"},
                   {.id = "median", .title = "median"},
                   {.id = "p90", .title = "p90"},
                   {.id = "p99", .title = "p99"},
                   {.id = "minimum", .title = "minimum"},
                   {.id = "samples", .title = "samples"},
                   {.id = "latency", .title = "run and wait"},
                   {.id = "inputs_per_s", .title = "inputs a second"},
                   {.id = "cpu", .title = "CPU time"},
                   {.id = "against_itself", .title = "against itself"},
                   left_column("false_alarm", "verdict")};
  for (const Json* row : sorted_rows(one_case)) {
    if (!is_measured(*row)) continue;
    table.rows.push_back({level_name(*row), time_cell(*row, "end_to_end_ms.estimate"),
                          time_cell(*row, "end_to_end_ms.median"), time_cell(*row, "end_to_end_ms.p90"),
                          time_cell(*row, "end_to_end_ms.p99"), time_cell(*row, "end_to_end_ms.min"),
                          value_cell(*row, "end_to_end_ms.samples", document::Format::count),
                          time_cell(*row, "latency_ms.estimate"),
                          value_cell(*row, "throughput_per_s", document::Format::digits), time_cell(*row, "cpu_ms"),
                          estimate_cell(at(*row, "aa.ratio"), document::Format::ratio), verdict_cell(at(*row, "aa"))});
  }
  return table;
}

document::Table sizes_and_settings(const Json& one_case) {
  document::Table table{.id = "settings", .title = "Size on disk and settings, as the levels report them"};
  table.columns = {left_column("level", "level"),
                   left_column("what", "what it is"),
                   {.id = "cache", .title = "its cache folder"},
                   {.id = "artefact", .title = "artefact"},
                   left_column("settings", "settings")};
  for (const Json* row : sorted_rows(one_case)) {
    if (!is_measured(*row)) continue;
    const auto facts = fact_words(*row);
    table.rows.push_back({level_name(*row), text(*row, "title"),
                          value_cell(*row, "disk_bytes", document::Format::bytes),
                          value_cell(*row, "artefact_bytes", document::Format::bytes),
                          settings_words(*row) + (facts.empty() ? "" : "; " + facts)});
  }
  return table;
}

// One level without a number in full: reason, what to do, the end of its log, how to repeat it.
document::Details failure_of(const Json& row) {
  document::Details details{level_name(row) + ": " + spaced(text(row, "state")), {Text{text(row, "reason")}}};
  if (const auto hint = text(row, "hint"); !hint.empty()) details.items.push_back(Text{"What to do: " + hint});
  if (const auto log = text(row, "log_tail"); !log.empty()) {
    details.items.push_back(Text{"The end of its log:"});
    details.items.push_back(Text{log, Text::Kind::log});
  }
  if (const auto repeat = text(row, "repeat"); !repeat.empty()) {
    details.items.push_back(Text{"To repeat it:"});
    details.items.push_back(Text{repeat, Text::Kind::command});
  }
  return details;
}

}  // namespace

document::Section numbers_section(const Json& one_case) {
  document::Section section{.id = "numbers", .title = "All numbers", .is_detail = true};
  if (auto times = all_times_table(one_case); !times.rows.empty()) {
    section.items.push_back(std::move(times));
    section.items.push_back(sizes_and_settings(one_case));
  }
  std::vector<document::Item> failures;
  for (const Json* row : sorted_rows(one_case))
    if (!is_measured(*row)) failures.push_back(failure_of(*row));
  if (!failures.empty()) section.items.push_back(Text{"Why levels have no number:"});
  std::move(failures.begin(), failures.end(), std::back_inserter(section.items));
  return section;
}

}  // namespace strata::report
