// SPDX-License-Identifier: Apache-2.0
// How the time of an iteration is distributed, and how it went over a run's blocks.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "report/format.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

using Rows = std::vector<const analysis::RowResult*>;

constexpr double kFarApart = 6;  // from so much between the least and the most on an axis is logarithmic

document::Table quantiles_table(const Rows& rows) {
  using analysis::TimeSummary;
  document::Table table{.id = "quantiles", .title = "Distribution of the time of one iteration"};
  add_facts<TimeSummary>(table, rows, &analysis::RowResult::end_to_end_ms,
                         {{{.id = "minimum", .title = "minimum"}, &TimeSummary::min},
                          {{.id = "median", .title = "median"}, &TimeSummary::median},
                          {{.id = "p90", .title = "p90"}, &TimeSummary::p90},
                          {{.id = "p99", .title = "p99"}, &TimeSummary::p99}},
                         document::NumberFormat::seconds, kSecondsPerMs);
  table.columns.push_back({.id = "samples", .title = "samples"});
  for (std::size_t r = 0; r < rows.size(); ++r)
    table.rows[r].push_back(
        value_cell(member_of(rows[r]->end_to_end_ms, &TimeSummary::samples), document::NumberFormat::count));
  return table;
}

// The share of a level's iterations that took at most so long, at each edge of its histogram.
document::Line cumulative(const analysis::RowResult& row) {
  document::Line line{.name = row.name(), .group = row.name()};
  const auto [edges, counts] = row.histogram.value_or(analysis::Histogram());
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  if (all <= 0 || edges.size() != counts.size() + 1) return line;
  double until = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (i > 0) until += static_cast<double>(counts[i - 1]);
    line.x.push_back(kSecondsPerMs * edges[i]);
    line.y.push_back(until / all);
  }
  return line;
}

document::Figure distribution(const Rows& rows) {
  document::Panel panel{
      .x = {.title = "time of one iteration", .format = document::NumberFormat::seconds},
      .y = {.title = "share of iterations that took at most so long", .format = document::NumberFormat::percent}};
  double least = 0, most = 0;
  for (const auto* row : rows) {
    auto line = cumulative(*row);
    if (line.x.empty()) continue;
    least = panel.lines.empty() ? line.x.front() : std::min(least, line.x.front());
    most = std::max(most, line.x.back());
    panel.lines.push_back(std::move(line));
  }
  panel.x.logarithmic = least > 0 && most > kFarApart * least;
  return {.id = "distribution",
          .title = "How the time of one iteration is distributed",
          .panels = {std::move(panel)},
          .note =
              "All samples of each level: the further left a line is, the faster; the steeper, the steadier. Harness "
              "levels are left out.",
          .table = quantiles_table(rows)};
}

// Where each restart begins when they stand one after the other, and the room between two.
struct Restarts {
  std::map<int, double> starts;
  double gap = 0;
};

Restarts restarts_of(const Rows& rows) {
  std::map<int, double> lengths;
  double all = 0;
  for (const auto* row : rows)
    for (const auto& block : row->blocks)
      if (block.time_s) {
        auto& length = lengths[block.restart];
        length = std::max(length, *block.time_s);
      }
  for (const auto& [restart, length] : lengths) all += length;
  Restarts out{.gap = 0.03 * all};
  double start = 0;
  for (const auto& [restart, length] : lengths) {
    out.starts[restart] = start;
    start += length + out.gap;
  }
  return out;
}

struct PlacedBlock {
  double at, seconds;
  bool disturbed;
  std::string label;
};

std::vector<PlacedBlock> placed_blocks(const analysis::RowResult& row, const Restarts& restarts) {
  std::vector<PlacedBlock> placed;
  for (const auto& block : row.blocks) {
    if (!block.time_s || !block.median_ms) continue;
    placed.push_back({.at = restarts.starts.at(block.restart) + *block.time_s,
                      .seconds = kSecondsPerMs * *block.median_ms,
                      .disturbed = block.disturbed,
                      .label = fmt::format("{}.{}{}", std::int64_t{1} + block.restart, std::int64_t{1} + block.round,
                                           block.disturbed ? ": " + block.why : "")});
  }
  return placed;
}

// A disturbed block is shaded until the next block of any level.
void shade(document::Panel& panel, const std::vector<std::vector<PlacedBlock>>& blocks) {
  std::vector<double> begun;
  for (const auto& of_level : blocks)
    for (const auto& block : of_level) begun.push_back(block.at);
  std::sort(begun.begin(), begun.end());
  for (const auto& of_level : blocks)
    for (const auto& block : of_level) {
      if (!block.disturbed) continue;
      const double most = block.at + std::max(1.0, 10 * block.seconds);
      const auto next = std::upper_bound(begun.begin(), begun.end(), block.at);
      panel.shaded.push_back({.from = block.at, .to = next == begun.end() ? most : std::min(*next, most)});
    }
}

void add_blocks(document::Panel& panel, const std::string& level, const std::vector<PlacedBlock>& blocks,
                bool disturbed) {
  document::Line line{
      .name = level + (disturbed ? ", disturbed" : ""), .group = level, .dashed = disturbed, .marks_only = true};
  for (const auto& block : blocks) {
    if (block.disturbed != disturbed) continue;
    line.x.push_back(block.at);
    line.y.push_back(block.seconds);
    line.labels.push_back(block.label);
  }
  if (!line.x.empty()) panel.lines.push_back(std::move(line));
}

// One line a level and restart: thousands of blocks would help nobody as a table.
document::Table blocks_table(const Rows& rows) {
  document::Table table{.id = "restarts", .title = "Blocks of each restart, by their median iteration"};
  table.columns = {left_column("level", "level"),         {.id = "restart", .title = "restart"},
                   {.id = "blocks", .title = "blocks"},   {.id = "disturbed", .title = "disturbed"},
                   {.id = "minimum", .title = "minimum"}, {.id = "median", .title = "median"},
                   {.id = "maximum", .title = "maximum"}};
  const auto counted = [](double value) {
    return document::Number{.value = value, .format = document::NumberFormat::count};
  };
  for (const auto* row : rows) {
    std::map<int, std::pair<std::vector<double>, int>> restarts;  // medians, disturbed
    for (const auto& block : row->blocks) {
      auto& [medians, disturbed] = restarts[block.restart];
      disturbed += block.disturbed;
      if (block.median_ms) medians.push_back(*block.median_ms);
    }
    for (auto& [restart, of] : restarts) {
      auto& [medians, disturbed] = of;
      std::sort(medians.begin(), medians.end());
      const auto at_share = [&, &sorted = medians](double share) -> document::Cell {
        if (sorted.empty()) return document::Absent{};
        const auto place = static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1));
        return document::Number{.value = kSecondsPerMs * sorted[place], .format = document::NumberFormat::seconds};
      };
      table.rows.push_back({row->name(), counted(1.0 + restart), counted(static_cast<double>(medians.size())),
                            counted(disturbed), at_share(0), at_share(0.5), at_share(1)});
    }
  }
  return table;
}

document::Figure blocks_figure(const Rows& rows) {
  document::Panel panel{.x = {.title = "measuring, restart after restart", .unit = "s"},
                        .y = {.title = "median iteration of a block", .format = document::NumberFormat::seconds}};
  const auto restarts = restarts_of(rows);
  std::vector<std::vector<PlacedBlock>> blocks;
  std::vector<double> seconds;
  for (const auto* row : rows) {
    blocks.push_back(placed_blocks(*row, restarts));
    for (const auto& block : blocks.back()) seconds.push_back(block.seconds);
    for (const bool disturbed : {false, true}) add_blocks(panel, row->name(), blocks.back(), disturbed);
  }
  if (!seconds.empty()) {
    const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
    panel.y.logarithmic = *least > 0 && *most > kFarApart * *least;
  }
  shade(panel, blocks);
  for (const auto& [restart, start] : restarts.starts)
    if (start > 0) panel.borders.push_back(start - restarts.gap / 2);
  return {.id = "blocks",
          .title = "Blocks over time",
          .panels = {std::move(panel)},
          .note =
              "Each mark is the median of one block: filled where nothing disturbed it, open and shaded where "
              "something did. Dotted lines: a restart with fresh processes. 2.7: its second restart, seventh round.",
          .table = blocks_table(rows)};
}

}  // namespace

document::Section times_section(const analysis::CaseResult& one_case) {
  document::Section section{.id = "times", .title = "Times", .is_detail = true};
  const auto rows = drawn_rows(one_case);
  if (rows.empty()) return section;
  section.items = {distribution(rows), blocks_figure(rows)};
  return section;
}

}  // namespace strata::report
