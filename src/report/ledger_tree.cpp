// SPDX-License-Identifier: Apache-2.0
#include "report/ledger_tree.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace strata::report {
namespace {

using analysis::LedgerEdge;

struct Walk {
  const analysis::CaseResult& one_case;
  std::set<std::string> placed;
  std::set<const LedgerEdge*> used;
  std::vector<LedgerNode> nodes;

  void place(const std::string& name, const LedgerEdge* edge, int depth) {
    placed.insert(name);
    if (edge) used.insert(edge);
    LedgerNode node{.name = name, .row = nullptr, .edge = edge, .depth = depth};
    for (const auto& row : one_case.rows)
      if (row.name() == name || (!node.row && row.level == name)) node.row = &row;
    nodes.push_back(node);
    for (const auto& next : one_case.ledger.edges)
      if (next.from == name && !placed.contains(next.to)) place(next.to, &next, depth + 1);
  }
};

}  // namespace

std::vector<LedgerNode> ledger_nodes(const analysis::CaseResult& one_case, std::vector<const LedgerEdge*>& others) {
  const auto& edges = one_case.ledger.edges;
  Walk walk{.one_case = one_case};
  if (edges.empty()) return {};
  if (const auto* reference = one_case.reference_row()) walk.place(reference->name(), nullptr, 0);
  for (const auto& edge : edges) {
    if (walk.placed.contains(edge.from)) continue;
    // A start that nothing leads to; in a cycle any will do, and the rest of it is placed from there.
    const bool is_root = std::ranges::none_of(edges, [&](const auto& other) { return other.to == edge.from; });
    if (is_root) walk.place(edge.from, nullptr, 0);
  }
  for (const auto& edge : edges)
    if (!walk.placed.contains(edge.from)) walk.place(edge.from, nullptr, 0);
  for (const auto& edge : edges)
    if (!walk.used.contains(&edge)) others.push_back(&edge);
  return walk.nodes;
}

std::string edge_difference(const LedgerEdge& edge) {
  if (!edge.difference_ms || !edge.difference_ms->value) return "";
  return duration_change(*edge.difference_ms->value, edge.difference_ms->low, edge.difference_ms->high);
}

std::string edge_words(const LedgerEdge& edge) {
  using analysis::EdgeKind;
  if (edge.kind != EdgeKind::differs)
    return edge.kind == EdgeKind::peer && edge.changes.empty() ? "a peer: ratio only" : edge.changes;
  if (edge.differs.empty()) return "differs in more than its edge names";
  return fmt::format("differs in {}", fmt::join(edge.differs, "; "));
}

}  // namespace strata::report
