// SPDX-License-Identifier: Apache-2.0
// Writes a graph in the form of graph.json (docs/bundle.md, "The graph"), which load.hpp reads.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "graph/graph.hpp"

namespace strata::graph {

nlohmann::ordered_json to_json(const Graph& graph);
// The text of a graph.json, one value and one node a line.
std::string to_text(const Graph& graph);

}  // namespace strata::graph
