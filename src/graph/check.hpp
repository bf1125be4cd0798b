// SPDX-License-Identifier: Apache-2.0
// Checks a loaded graph against the table of operations, and counts its work.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "graph/operations.hpp"

namespace strata::graph {

// Of one node, for the whole batch. Bytes are the least that must move: each tensor once; a view moves none, though a
// layout may force a copy. FLOPs as flops.hpp counts them, also of operations that are not known otherwise.
struct Work {
  bool known = false;
  bool counted = false;  // false: its FLOPs are not known, and 0 here
  Aliasing aliasing = Aliasing::none;
  std::int64_t flops = 0;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
};

struct Checked {
  std::vector<Work> nodes;                        // as Graph::nodes
  Work total;                                     // known, counted: all of them
  std::vector<int> unknown;                       // nodes whose operation the table lacks
  std::map<std::string, std::int64_t> uncounted;  // operations whose FLOPs are not in the total -> nodes
};

// Error: the recorded shape or type of an output, or an argument, breaks the operation's rule; or a count does not fit
// into 64 bits. Names the node, its module and the source line. An unknown operation is no error.
Result<Checked> check(const Graph& graph);

}  // namespace strata::graph
