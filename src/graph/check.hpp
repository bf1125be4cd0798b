// SPDX-License-Identifier: Apache-2.0
// Checks a loaded graph against the table of operations, and counts its work.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "graph/operations.hpp"

namespace strata::graph {

// Of one node, for the whole batch. Bytes are the least that must move: each tensor once; a view moves none, though a
// layout may force a copy. A node of an unknown operation has its bytes and no FLOPs.
struct Work {
  bool known = false;
  Aliasing aliasing = Aliasing::none;
  std::int64_t flops = 0;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
};

struct Checked {
  std::vector<Work> nodes;   // as Graph::nodes
  Work total;                // known: all of them
  std::vector<int> unknown;  // nodes whose operation the table lacks
};

// Error: the recorded shape or type of an output, or an argument, breaks the operation's rule; or a count does not fit
// into 64 bits. Names the node, its module and the source line. An unknown operation is no error.
Result<Checked> check(const Graph& graph);

// Nodes whose operation is not in `operations` (ATen names as "conv2d"): what a level with these cannot run.
std::vector<int> nodes_without(const Graph& graph, const std::vector<std::string>& operations);

}  // namespace strata::graph
