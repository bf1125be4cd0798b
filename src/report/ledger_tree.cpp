// SPDX-License-Identifier: Apache-2.0
#include "report/ledger_tree.hpp"

#include <algorithm>
#include <set>

namespace strata::report {
namespace {

struct Walk {
  const Json& edges;
  const Json& one_case;
  std::set<std::string> placed;
  std::set<const Json*> used;
  std::vector<LedgerNode> nodes;

  void place(const std::string& name, const Json* edge, int depth) {
    placed.insert(name);
    if (edge) used.insert(edge);
    LedgerNode node{.name = name, .row = nullptr, .edge = edge, .depth = depth};
    for (const auto& row : list(one_case, "rows"))
      if (level_name(row) == name || (!node.row && text(row, "level") == name)) node.row = &row;
    nodes.push_back(node);
    for (const auto& next : edges)
      if (const auto to = text(next, "to"); text(next, "from") == name && !placed.count(to))
        place(to, &next, depth + 1);
  }
};

}  // namespace

std::vector<LedgerNode> ledger_nodes(const Json& one_case, std::vector<const Json*>& others) {
  const Json& edges = list(one_case, "ledger.edges");
  Walk walk{.edges = edges, .one_case = one_case};
  if (edges.empty()) return {};
  const Json* reference = reference_row(one_case);
  if (reference) walk.place(level_name(*reference), nullptr, 0);
  for (const auto& edge : edges) {
    const auto from = text(edge, "from");
    if (walk.placed.count(from)) continue;
    // A start that nothing leads to; in a cycle any will do, and the rest of it is placed from there.
    const bool is_root = std::none_of(edges.begin(), edges.end(), [&](const Json& e) { return text(e, "to") == from; });
    if (is_root) walk.place(from, nullptr, 0);
  }
  for (const auto& edge : edges)
    if (!walk.placed.count(text(edge, "from"))) walk.place(text(edge, "from"), nullptr, 0);
  for (const auto& edge : edges)
    if (!walk.used.count(&edge)) others.push_back(&edge);
  return walk.nodes;
}

std::string edge_difference(const Json& edge) {
  const auto value = number(edge, "difference_ms.value");
  if (!value) return "";
  return duration_change(*value, number(edge, "difference_ms.low"), number(edge, "difference_ms.high"));
}

std::string edge_words(const Json& edge) {
  const auto kind = text(edge, "kind");
  if (kind != "differs") {
    const auto changes = text(edge, "changes");
    return kind == "peer" && changes.empty() ? "a peer: ratio only" : changes;
  }
  std::string out;
  for (const auto& what : list(edge, "differs"))
    if (what.is_string()) out += (out.empty() ? "differs in " : "; ") + what.get<std::string>();
  return out.empty() ? "differs in more than its edge names" : out;
}

}  // namespace strata::report
