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
void add_edge(std::vector<document::Cell>& cells, const Json& edge) {
  const auto kind = text(edge, "kind");
  const auto difference = kind == "step" ? edge_difference(edge) : "";
  const bool compared = kind != "differs" && at(edge, "ratio").is_object();
  cells.emplace_back(edge_words(edge));
  cells.push_back(difference.empty() ? document::Cell{document::Absent{}} : document::Cell{difference});
  cells.push_back(compared ? estimate_cell(at(edge, "ratio"), document::Format::ratio) : document::Absent{});
  cells.push_back(kind == "differs" ? document::Absent{} : verdict_cell(edge));
}

document::Cell node_time(const LedgerNode& node) {
  if (!node.row) return document::Absent{};
  return is_measured(*node.row) ? time_cell(*node.row, "end_to_end_ms.estimate")
                                : document::Cell{spaced(text(*node.row, "state"))};
}

}  // namespace

document::Section ledger_section(const Json& one_case) {
  document::Section section{.id = "ledger", .title = "Ledger"};
  std::vector<const Json*> others;
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
  for (const Json* edge : others) {
    std::vector<document::Cell> cells{fmt::format("also {} to {}", text(*edge, "from"), text(*edge, "to")),
                                      document::Absent{}};
    add_edge(cells, *edge);
    table.rows.push_back(std::move(cells));
    table.depths.push_back(0);
  }
  table.note =
      "Each level stands below the one that it is compared with; a difference belongs to all that its edge names. "
      "Where "
      "something else differs, too, nothing is attributed; a peer has a speedup and no attribution.";
  if (const auto limit = number(one_case, "limits.limit_ms"))
    table.note += fmt::format(" {}: {}.", limit_title(one_case), duration(*limit));
  section.items.push_back(std::move(table));
  return section;
}

}  // namespace strata::report
