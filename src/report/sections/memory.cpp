// SPDX-License-Identifier: Apache-2.0
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

document::Table memory_table(const std::vector<const analysis::RowResult*>& rows) {
  using analysis::MemoryFacts;
  document::Table table{.id = "memory_values", .title = "Memory of a worker by itself"};
  add_facts<MemoryFacts, analysis::OptionalBytes>(
      table, rows, &analysis::RowResult::memory,
      {{{.id = "idle_private_bytes", .title = "idle runtime"}, &MemoryFacts::idle_private_bytes},
       {{.id = "above_idle_bytes", .title = "above idle"}, &MemoryFacts::above_idle_bytes},
       {{.id = "peak_private_bytes", .title = "peak private"}, &MemoryFacts::peak_private_bytes},
       {{.id = "steady_private_bytes", .title = "steady private"}, &MemoryFacts::steady_private_bytes},
       {{.id = "steady_pss_bytes", .title = "steady share (PSS)"}, &MemoryFacts::steady_pss_bytes},
       {{.id = "shared_file_bytes", .title = "file pages"}, &MemoryFacts::shared_file_bytes},
       {{.id = "device_peak_bytes", .title = "GPU peak"}, &MemoryFacts::device_peak_bytes}},
      document::NumberFormat::bytes);
  return table;
}

}  // namespace

document::Section memory_section(const analysis::CaseResult& one_case) {
  document::Section section{.id = "memory", .title = "Memory", .is_detail = true};
  const auto rows = drawn_rows(one_case);
  if (rows.empty()) return section;
  using analysis::MemoryFacts;
  const auto part = [&](const char* name, analysis::OptionalBytes MemoryFacts::*member) {
    return document::BarPart{name, values_of(rows, [&](const auto& row) { return member_of(row.memory, member); })};
  };
  section.items.push_back(
      document::Bars{.id = "peak_memory",
                     .title = "Private memory at its peak, alone on the machine",
                     .rows = names_of(rows),
                     .parts = {part("idle runtime", &MemoryFacts::idle_private_bytes),
                               part("network, at its peak", &MemoryFacts::above_idle_bytes)},
                     .marks = {part("steady share with file pages (PSS)", &MemoryFacts::steady_pss_bytes)},
                     .scale = {.title = "memory", .format = document::NumberFormat::bytes},
                     .note = "The runtime when idle and what the network adds.",
                     .table = memory_table(rows)});
  return section;
}

}  // namespace strata::report
