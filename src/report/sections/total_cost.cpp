// SPDX-License-Identifier: Apache-2.0
#include "report/sections/total_cost.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/access.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

document::Table cost_table(const std::vector<const analysis::RowResult*>& rows) {
  document::Table table{.id = "costs", .title = "What a level costs besides its time"};
  table.columns = {left_column("level", "level"),
                   {.id = "built_once", .title = "built once"},
                   {.id = "each_start", .title = "each start"},
                   {.id = "repaid_once", .title = "repaid: built once"},
                   {.id = "repaid_start", .title = "repaid: each start"},
                   {.id = "weights", .title = "weights in"},
                   {.id = "memory", .title = "memory"},
                   {.id = "pss", .title = "share (PSS)"},
                   {.id = "deployment_size", .title = "deployment size"},
                   {.id = "lines", .title = "maintained lines"}};
  using analysis::MemoryFacts, analysis::StartUp;
  for (const auto* row : rows) {
    const auto warm = row->warm_start_ms(), cold = member_of(row->startup, &StartUp::cold_start_ms);
    const auto built =
        document::number_cell(cold && warm ? std::optional(kSecondsPerMs * std::max(0.0, *cold - *warm)) : std::nullopt,
                              document::NumberFormat::seconds);
    table.rows.push_back(
        {row->name(), built, time_cell(warm), break_even_words(row->break_even_once, glyphs(true), "costs no more"),
         break_even_words(row->break_even, glyphs(true)), time_cell(member_of(row->startup, &StartUp::weights_ms)),
         value_cell(row->peak_private_bytes(), document::NumberFormat::bytes),
         value_cell(member_of(row->memory, &MemoryFacts::steady_pss_bytes), document::NumberFormat::bytes),
         value_cell(member_of(row->shipped, &analysis::Shipped::bytes), document::NumberFormat::bytes),
         value_cell(member_of(row->lines, &store::Lines::total), document::NumberFormat::count)});
  }
  table.note =
      "Repaid: iterations after which a level has repaid it against the reference, with 99% intervals. Share: memory "
      "with its share of files that processes have in common.";
  return table;
}

template <class File>
std::string files_words(const std::vector<File>& files, auto member, std::string (*write)(double)) {
  std::string out;
  for (const auto& file : files)
    out += (out.empty() ? "" : ", ") + file.file + " " + write(static_cast<double>(file.*member));
  return out;
}

document::Table counted_files(const std::vector<const analysis::RowResult*>& rows) {
  document::Table table{.id = "files", .title = "Files behind these figures"};
  table.columns = {left_column("level", "level"), left_column("lines", "maintained lines of code"),
                   left_column("libraries", "libraries that the process ran")};
  for (const auto* row : rows) {
    const auto maintained = row->lines ? files_words(row->lines->files, &store::FileLines::lines, count) : "",
               libraries = row->shipped ? files_words(row->shipped->libraries, &store::FileBytes::bytes, size) : "";
    if (!maintained.empty() || !libraries.empty()) table.rows.push_back({row->name(), maintained, libraries});
  }
  return table;
}

}  // namespace

document::Section total_cost_section(const analysis::CaseResult& one_case) {
  document::Section section{.id = "total_cost", .title = "Total cost"};
  const auto rows = drawn_rows(one_case);
  if (rows.empty()) return section;
  section.items.push_back(cost_table(rows));
  if (auto files = counted_files(rows); !files.rows.empty())
    section.items.push_back(document::Details{"Which files these figures count", {std::move(files)}});
  return section;
}

std::string break_even_words(const std::optional<analysis::BreakEven>& break_even, const Glyphs& glyphs,
                             const char* no_cost) {
  if (!break_even) return glyphs.missing;
  if (break_even->never) return "never";
  if (break_even->inconclusive) return "inconclusive";
  const auto value = break_even->iterations, low = break_even->low, high = break_even->high;
  if (!value) return glyphs.missing;
  if (*value <= 0) return no_cost;
  if (*value < 1) return "at once";
  if (!low) return count(*value);
  if (!high) return fmt::format("{} (from {})", count(*value), count(*low));  // the gain may be next to nothing
  return fmt::format("{} ({} to {})", count(*value), count(*low), count(*high));
}

std::string fact_words(const analysis::RowResult& row) {
  std::string out;
  const auto add = [&](const std::string& words) { out += (out.empty() ? "" : "; ") + words; };
  if (const auto graphs = number(row.facts, "graphs")) add(count(*graphs) + (*graphs == 1 ? " graph" : " graphs"));
  if (const auto guards = number(row.facts, "guards")) {
    const auto us = number(row.facts, "guard_us");
    add(count(*guards) + " guards" + (us ? ", " + duration(*us * 1e-3) + " a call" : ""));
  }
  if (const auto again = number(row.facts, "recompiles"); again && *again > 0) {
    add(count(*again) + " compiled again");
    for (const auto& reason : list(row.facts, "recompile_reasons"))
      if (reason.is_string()) out += ", " + reason.get<std::string>();
  }
  if (const auto bailouts = number(row.facts, "bailouts")) add(count(*bailouts) + " bailouts");
  return out;
}

}  // namespace strata::report
