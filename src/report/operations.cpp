// SPDX-License-Identifier: Apache-2.0
#include "report/operations.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <vector>

#include "report/sections/cells.hpp"

namespace strata::report {
namespace {

using analysis::GroupBy;
using analysis::OperationGroup;
using document::NumberFormat;

struct Shown {
  document::Column column;
  std::function<document::Cell(const OperationGroup&)> cell;
};

document::Cell count_cell(int count) {
  return document::Number{.value = static_cast<double>(count), .format = NumberFormat::count};
}

bool has_kernels(GroupBy by) {
  return by == GroupBy::operation || by == GroupBy::shape || by == GroupBy::call;
}

double mean_ms(const OperationGroup& group) {
  return group.ms / group.calls;
}

std::vector<Shown> columns_of(const analysis::RowResult& row, const std::optional<analysis::LimitFacts>& limits,
                              GroupBy by) {
  const std::string what = by == GroupBy::call ? "operation" : std::string(name_of(by));
  std::vector<Shown> shown{{left_column(what, what), [](const auto& group) { return group.name; }}};
  if (has_kernels(by))
    shown.push_back({left_column("kernel", "kernel"), [](const auto& group) { return group.kernel; }});
  shown.push_back({{.id = "calls", .title = "calls"}, [](const auto& group) { return count_cell(group.calls); }});
  shown.push_back(
      {{.id = "time", .title = "time", .has_bars = true}, [](const auto& group) { return time_cell(group.ms); }});
  shown.push_back({{.id = "share", .title = "share"}, [whole = row.profile->profiled_ms](const auto& group) {
                     return document::Number{.value = group.ms / whole, .format = NumberFormat::percent};
                   }});
  if (by != GroupBy::call) {
    shown.push_back({{.id = "mean", .title = "mean"}, [](const auto& group) { return time_cell(mean_ms(group)); }});
    shown.push_back(
        {{.id = "longest", .title = "longest"}, [](const auto& group) { return time_cell(group.longest_ms); }});
  }
  if (by != GroupBy::layer)
    shown.push_back({left_column("layer", by == GroupBy::call ? "layer" : "longest in"),
                     [](const auto& group) { return group.longest_layer; }});
  shown.push_back(
      {{.id = "between", .title = "time before it"}, [](const auto& group) { return time_cell(group.gap_ms); }});
  shown.push_back({{.id = "gflops", .title = "rate", .unit = "GFLOP/s"},
                   [](const auto& group) { return value_cell(group.gflops_per_s(), NumberFormat::digits); }});
  if (limits && limits->gflops > 0)
    shown.push_back({{.id = "of_peak", .title = "of the peak"}, [peak = limits->gflops](const auto& group) {
                       return value_cell(group.gflops_per_s(), NumberFormat::percent, 1 / peak);
                     }});
  shown.push_back({{.id = "gbytes", .title = "moved", .unit = "GB/s"},
                   [](const auto& group) { return value_cell(group.gbytes_per_s(), NumberFormat::digits); }});
  return shown;
}

double key_of(const OperationGroup& group, OperationSort sort) {
  switch (sort) {
    case OperationSort::time:
      return group.ms;
    case OperationSort::mean:
      return mean_ms(group);
    case OperationSort::calls:
      return group.calls;
    case OperationSort::between:
      return group.gap_ms;
    case OperationSort::flops:
      return group.flops.value_or(-1);
    case OperationSort::rate:
      return group.gflops_per_s().value_or(-1);
    case OperationSort::order:
      return 0;
  }
  return 0;
}

// What nobody has is no column.
void leave_out_empty(document::Table& table) {
  for (std::size_t i = table.columns.size(); i-- > 0;) {
    const bool has_any = std::ranges::any_of(table.rows, [&](const auto& cells) {
      const auto* text = std::get_if<std::string>(&cells[i]);
      return text ? !text->empty() : !std::holds_alternative<document::Absent>(cells[i]);
    });
    if (has_any || i == 0) continue;
    table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(i));
    for (auto& cells : table.rows) cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

std::string_view name_of(OperationSort sort) {
  constexpr std::array<std::string_view, std::size(all_operation_sorts)> names{"time",  "mean", "calls", "between",
                                                                               "flops", "rate", "order"};
  return names[static_cast<std::size_t>(sort)];
}

document::Table operations_table(const analysis::RowResult& row, const std::optional<analysis::LimitFacts>& limits,
                                 const OperationsView& view) {
  auto groups = analysis::groups_of(*row.profile, view.by);
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const auto& a, const auto& b) { return key_of(a, view.sort) > key_of(b, view.sort); });
  const auto shown = columns_of(row, limits, view.by);
  document::Table table{.id = "profile_operations_" + row.name(), .title = "Operations of " + row.name()};
  for (const auto& each : shown) table.columns.push_back(each.column);
  const auto count = view.top == 0 ? groups.size() : std::min(groups.size(), view.top);
  for (std::size_t i = 0; i < count; ++i) {
    auto& cells = table.rows.emplace_back();
    for (const auto& each : shown) cells.push_back(each.cell(groups[i]));
  }
  leave_out_empty(table);
  if (groups.size() > count) table.note = fmt::format("The first {} of {}.", count, groups.size());
  return table;
}

Error no_profile(const analysis::RunResult& run) {
  return {fmt::format("the run {} has no profile", run.run.id), "measure it with --profile", Exit::usage};
}

Result<document::Document> operations_document(const analysis::RunResult& run, const OperationsView& view) {
  document::Document out{.title = fmt::format("strata: operations of run {}", run.run.id)};
  std::vector<std::string> profiled;
  for (const auto& one_case : run.cases) {
    document::Section section{.id = "operations"};
    for (const auto* row : drawn_rows(one_case)) {
      if (!row->profile || row->profile->operations.empty()) continue;
      profiled.push_back(row->name());
      if (!view.level || *view.level == row->name())
        section.items.push_back(operations_table(*row, one_case.limits, view));
    }
    if (section.items.empty()) continue;
    out.parts.push_back({.title = one_case.id, .id = fmt::format("case{}", out.parts.size())});
    out.parts.back().sections.push_back(std::move(section));
  }
  if (profiled.empty()) return tl::unexpected(no_profile(run));
  if (out.parts.empty())
    return fail(fmt::format("the run {} has no profile of {}", run.run.id, *view.level),
                fmt::format("it has those of {}", fmt::join(profiled, ", ")), Exit::usage,
                {.where = "--level", .got = *view.level, .allowed = fmt::format("{}", fmt::join(profiled, ", "))});
  out.summary = fmt::format(
      "By {}, sorted by {}. Times are of one iteration, means over the faster half of those that "
      "were recorded; rates are of products, by the FLOPs and the least bytes of the captured graph: above 100% of "
      "the peak is an algorithm that does fewer, as Winograd's.",
      analysis::name_of(view.by), name_of(view.sort));
  return out;
}

}  // namespace strata::report
