// SPDX-License-Identifier: Apache-2.0
// Where the time of an iteration goes at each level: by what operations do, by the part of the network, by operation.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/operation_groups.hpp"
#include "report/operations.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

using analysis::OperationKind;
using document::NumberFormat;

document::Cell ms_cell(double milliseconds) {
  return document::Number{.value = milliseconds * kSecondsPerMs, .format = NumberFormat::seconds};
}

std::vector<const analysis::RowResult*> profiled_rows(const analysis::CaseResult& one_case) {
  auto rows = drawn_rows(one_case);
  std::erase_if(rows, [](const auto* row) { return !row->profile || row->profile->operations.empty(); });
  return rows;
}

std::vector<OperationKind> kinds_of(const std::vector<const analysis::RowResult*>& rows) {
  std::vector<OperationKind> kinds;
  for (const auto kind : analysis::all_operation_kinds)
    if (std::any_of(rows.begin(), rows.end(),
                    [&](const auto* row) { return analysis::ms_by_kind(*row->profile).contains(kind); }))
      kinds.push_back(kind);
  return kinds;
}

document::Bars kinds_bars(const std::vector<const analysis::RowResult*>& rows) {
  document::Bars bars{.id = "profile_kinds",
                      .title = "An iteration by what its operations do",
                      .rows = names_of(rows),
                      .scale = {.title = "time of an iteration", .format = NumberFormat::seconds, .from_zero = true},
                      .note =
                          "Between: the time between operations, before the first and after the last, by the same "
                          "clock: interpreter, dispatcher, allocator, waiting."};
  document::Table table{.id = "profile_kind_times",
                        .title = "An iteration by what its operations do",
                        .columns = {left_column("level", "level"),
                                    {.id = "plain", .title = "iteration"},
                                    {.id = "profiled", .title = "while recorded"},
                                    {.id = "operations", .title = "operations"}}};
  for (const auto* row : rows)
    table.rows.push_back({row->name(), ms_cell(row->profile->plain_ms), ms_cell(row->profile->profiled_ms),
                          document::Number{.value = static_cast<double>(row->profile->operations.size()),
                                           .format = NumberFormat::count}});
  for (const auto kind : kinds_of(rows)) {
    const std::string name(analysis::name_of(kind));
    document::BarPart part{.name = name, .values = {}};
    table.columns.push_back({.id = name, .title = name});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto sums = analysis::ms_by_kind(*rows[i]->profile);
      const auto at = sums.find(kind);
      part.values.push_back(at == sums.end() ? 0 : at->second * kSecondsPerMs);
      table.rows[i].push_back(at == sums.end() ? document::Cell{document::Absent{}} : ms_cell(at->second));
    }
    bars.parts.push_back(std::move(part));
  }
  bars.table = std::move(table);
  return bars;
}

document::Table parts_table(const std::vector<const analysis::RowResult*>& rows) {
  std::vector<const store::OperationProfile*> profiles;
  for (const auto* row : rows) profiles.push_back(&*row->profile);
  const auto parts = analysis::parts_of(profiles);
  document::Table table{.id = "profile_parts",
                        .title = "An iteration by the part of the network, level beside level",
                        .columns = {left_column("part", "part")}};
  for (const auto* row : rows) table.columns.push_back({.id = row->name(), .title = row->name(), .has_bars = true});
  const auto add = [&](const std::string& title, auto ms_of) {
    std::vector<document::Cell> cells{title};
    for (const auto* profile : profiles) {
      const auto ms = ms_of(*profile);
      cells.push_back(ms > 0 ? ms_cell(ms) : document::Cell{document::Absent{}});
    }
    table.rows.push_back(std::move(cells));
  };
  std::map<const store::OperationProfile*, std::map<std::string, double>> sums;
  for (const auto* profile : profiles) sums[profile] = analysis::ms_by_part(*profile, parts);
  for (const auto& part : parts)
    add(part.empty() ? std::string(analysis::kTheNetworkItself) : part,
        [&](const store::OperationProfile& profile) { return sums[&profile][part]; });
  add(std::string(analysis::kNoKnownPart), [](const store::OperationProfile& profile) {
    double sum = 0;
    for (const auto& operation : profile.operations) sum += operation.layer ? 0 : operation.ms;
    return sum;
  });
  add("between operations",
      [](const store::OperationProfile& profile) { return analysis::ms_by_kind(profile).at(OperationKind::between); });
  add("all of it, while recorded", [](const store::OperationProfile& profile) { return profile.profiled_ms; });
  table.note =
      "A call that computes several layers at once counts for the first of them, so that others have no time of their "
      "own.";
  return table;
}

// What a level's products reach beside what the machine was measured to do at most; nullopt: none of them is known.
std::optional<document::Figure> roofline(const std::vector<const analysis::RowResult*>& rows,
                                         const std::optional<analysis::LimitFacts>& limits) {
  if (!limits || limits->gflops <= 0 || limits->gbytes_per_s <= 0) return std::nullopt;
  document::Panel panel{.x = {.title = "FLOPs a byte that must move", .unit = "FLOP/B", .logarithmic = true},
                        .y = {.title = "rate", .unit = "GFLOP/s", .logarithmic = true}};
  double low = limits->gflops / limits->gbytes_per_s, high = low;
  for (const auto* row : rows) {
    document::Line line{.name = row->name(), .marks_only = true};
    for (const auto& group : analysis::groups_of(*row->profile, analysis::GroupBy::call)) {
      if (!group.gflops_per_s() || !group.bytes) continue;
      line.x.push_back(*group.flops / *group.bytes);
      line.y.push_back(*group.gflops_per_s());
      line.labels.push_back(group.longest_layer + ": " + group.name);
      low = std::min(low, line.x.back());
      high = std::max(high, line.x.back());
    }
    if (!line.x.empty()) panel.lines.push_back(std::move(line));
  }
  if (panel.lines.empty()) return std::nullopt;
  document::Line roof{.name = "measured limit", .dashed = true};
  for (const double at : {low / 2, limits->gflops / limits->gbytes_per_s, high * 2}) {
    roof.x.push_back(at);
    roof.y.push_back(std::min(limits->gflops, at * limits->gbytes_per_s));
  }
  panel.lines.push_back(std::move(roof));
  return document::Figure{
      .id = "profile_roofline",
      .title = "Products beside the machine's measured limits",
      .panels = {std::move(panel)},
      .note =
          "A point is a call of a product whose layer the captured graph knows; bytes count each "
          "tensor once and come from memory. What lies above the slope finds its tensors in caches."};
}

}  // namespace

document::Section profile_section(const analysis::CaseResult& one_case) {
  document::Section section{.id = "profile", .title = "Where the time goes"};
  const auto rows = profiled_rows(one_case);
  if (!rows.empty()) {
    section.items = {kinds_bars(rows), parts_table(rows)};
    if (auto figure = roofline(rows, one_case.limits)) section.items.push_back(*std::move(figure));
    for (const auto* row : rows) section.items.push_back(operations_table(*row, one_case.limits, {}));
  }
  for (const auto& row : one_case.rows)
    if (row.profile && !row.profile->note.empty())
      section.items.push_back(document::Text{fmt::format("{} has no profile: {}.", row.name(), row.profile->note)});
  return section;
}

}  // namespace strata::report
