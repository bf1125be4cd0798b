// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "report/first_screen.hpp"
#include "report/format.hpp"
#include "report/ledger_tree.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

// What the edge changes, costs or saves: behind the name and the time of the level that it leads to.
void add_edge(std::vector<document::Cell>& cells, const analysis::LedgerEdge& edge) {
  const auto difference = edge.kind == analysis::EdgeKind::step ? edge_difference(edge) : "";
  const bool compared = edge.kind != analysis::EdgeKind::differs;
  cells.emplace_back(edge_words(edge));
  cells.push_back(difference.empty() ? document::Cell{document::Absent{}} : document::Cell{difference});
  cells.push_back(compared ? estimate_cell(edge.ratio, document::NumberFormat::ratio) : document::Absent{});
  cells.push_back(compared ? verdict_cell(edge.verdict) : document::Absent{});
}

document::Cell node_time(const LedgerNode& node) {
  if (!node.row) return document::Absent{};
  return node.row->is_measured() ? time_cell(member_of(node.row->end_to_end_ms, &analysis::TimeSummary::estimate))
                                 : document::Cell{spaced(to_string(node.row->state))};
}

}  // namespace

document::Section ledger_section(const analysis::CaseResult& one_case) {
  document::Section section{.id = "ledger", .title = "Ledger"};
  std::vector<const analysis::LedgerEdge*> others;
  const auto nodes = ledger_nodes(one_case, others);
  if (nodes.empty()) return section;
  document::Table table{.id = "steps", .title = "What each step changes, costs or saves"};
  table.columns = {left_column("level", "level"),
                   {.id = "time", .title = "time", .has_bars = true},
                   left_column("changes", "what changes"),
                   {.id = "difference", .title = "difference (99% CI)"},
                   {.id = "speedup", .title = "speedup (99% CI)"},
                   left_column("verdict", "verdict")};
  for (const auto& node : nodes) {
    std::vector<document::Cell> cells{node.name, node_time(node)};
    if (node.edge) add_edge(cells, *node.edge);
    table.rows.push_back(std::move(cells));
    table.depths.push_back(node.depth);
  }
  for (const auto* edge : others) {
    std::vector<document::Cell> cells{fmt::format("also {} to {}", edge->from, edge->to), document::Absent{}};
    add_edge(cells, *edge);
    table.rows.push_back(std::move(cells));
    table.depths.push_back(0);
  }
  table.note =
      "Each level stands below the one that it is compared with; a difference belongs to all that its edge names. "
      "Where "
      "something else differs, too, nothing is attributed; a peer has a speedup and no attribution.";
  if (const auto limit = member_of(one_case.limits, &analysis::LimitFacts::limit_ms))
    table.note += fmt::format(" {}: {}.", limit_title(one_case), duration(*limit));
  section.items.push_back(std::move(table));
  return section;
}

}  // namespace strata::report
