// SPDX-License-Identifier: Apache-2.0
#include "report/sections/total_cost.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

document::Table cost_table(const std::vector<const Json*>& rows) {
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
  for (const Json* row : rows) {
    const auto warm = number(*row, "startup.warm_start_ms"), cold = number(*row, "startup.cold_start_ms");
    const auto built =
        document::number_cell(cold && warm ? std::optional(kSecondsPerMs * std::max(0.0, *cold - *warm)) : std::nullopt,
                              document::Format::seconds);
    table.rows.push_back({level_name(*row), built, time_cell(*row, "startup.warm_start_ms"),
                          break_even_words(at(*row, "break_even_once"), glyphs(true), "costs no more"),
                          break_even_words(at(*row, "break_even"), glyphs(true)), time_cell(*row, "startup.weights_ms"),
                          value_cell(*row, "memory.peak_private_bytes", document::Format::bytes),
                          value_cell(*row, "memory.steady_pss_bytes", document::Format::bytes),
                          value_cell(*row, "shipped.bytes", document::Format::bytes),
                          value_cell(*row, "lines.total", document::Format::count)});
  }
  table.note =
      "Repaid: iterations after which a level has repaid it against the reference, with 99% intervals. Share: memory "
      "with its share of files that processes have in common.";
  return table;
}

std::string files_words(const Json& files, const char* field, std::string (*write)(double)) {
  std::string out;
  for (const auto& file : files)
    out += (out.empty() ? "" : ", ") + text(file, "file") + " " + write(number(file, field).value_or(0));
  return out;
}

document::Table counted_files(const std::vector<const Json*>& rows) {
  document::Table table{.id = "files", .title = "Files behind these figures"};
  table.columns = {left_column("level", "level"), left_column("lines", "maintained lines of code"),
                   left_column("libraries", "libraries that the process ran")};
  for (const Json* row : rows) {
    const auto maintained = files_words(list(*row, "lines.files"), "lines", count),
               libraries = files_words(list(*row, "shipped.libraries"), "bytes", size);
    if (!maintained.empty() || !libraries.empty()) table.rows.push_back({level_name(*row), maintained, libraries});
  }
  return table;
}

}  // namespace

document::Section total_cost_section(const Json& one_case) {
  document::Section section{.id = "total_cost", .title = "Total cost"};
  const auto rows = drawn_rows(one_case);
  if (rows.empty()) return section;
  section.items.push_back(cost_table(rows));
  if (auto files = counted_files(rows); !files.rows.empty())
    section.items.push_back(document::Details{"Which files these figures count", {std::move(files)}});
  return section;
}

std::string break_even_words(const Json& break_even, const Glyphs& glyphs, const char* no_cost) {
  if (!break_even.is_object()) return glyphs.missing;
  if (flag(break_even, "never")) return "never";
  if (flag(break_even, "inconclusive")) return "inconclusive";
  const auto value = number(break_even, "iterations"), low = number(break_even, "low"),
             high = number(break_even, "high");
  if (!value) return glyphs.missing;
  if (*value <= 0) return no_cost;
  if (*value < 1) return "at once";
  if (!low) return count(*value);
  if (!high) return fmt::format("{} (from {})", count(*value), count(*low));  // the gain may be next to nothing
  return fmt::format("{} ({} to {})", count(*value), count(*low), count(*high));
}

std::string fact_words(const Json& row) {
  std::string out;
  const auto add = [&](const std::string& words) { out += (out.empty() ? "" : "; ") + words; };
  if (const auto graphs = number(row, "facts.graphs")) add(count(*graphs) + (*graphs == 1 ? " graph" : " graphs"));
  if (const auto guards = number(row, "facts.guards")) {
    const auto us = number(row, "facts.guard_us");
    add(count(*guards) + " guards" + (us ? ", " + duration(*us * 1e-3) + " a call" : ""));
  }
  if (const auto again = number(row, "facts.recompiles"); again && *again > 0) {
    add(count(*again) + " compiled again");
    for (const auto& reason : list(row, "facts.recompile_reasons"))
      if (reason.is_string()) out += ", " + reason.get<std::string>();
  }
  if (const auto bailouts = number(row, "facts.bailouts")) add(count(*bailouts) + " bailouts");
  return out;
}

}  // namespace strata::report
