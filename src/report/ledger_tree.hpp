// SPDX-License-Identifier: Apache-2.0
// The ledger's graph laid out as an outline: each level under the one it comes from, in the order in which it is drawn.
#pragma once

#include <string>
#include <vector>

#include "analysis/result.hpp"
#include "report/format.hpp"

namespace strata::report {

struct LedgerNode {
  std::string name;
  const analysis::RowResult* row = nullptr;    // nullptr: an edge names a level that has no row
  const analysis::LedgerEdge* edge = nullptr;  // the edge into this node; nullptr for a root
  int depth = 0;
};

// Depth first from the reference; every level of an edge appears once. Further edges into a placed level come back in
// `others`.
std::vector<LedgerNode> ledger_nodes(const analysis::CaseResult& one_case,
                                     std::vector<const analysis::LedgerEdge*>& others);

// What an edge says: "-8.30 ms (-9.00 to -7.60)" or "" where it has no difference.
std::string edge_difference(const analysis::LedgerEdge& edge);

// What it changes, or "differs in layout ...", or that it is a peer.
std::string edge_words(const analysis::LedgerEdge& edge);

}  // namespace strata::report
