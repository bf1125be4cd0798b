// SPDX-License-Identifier: Apache-2.0
// A captured network for people and programs: as a table, as JSON, as Graphviz.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "graph/check.hpp"

namespace strata::report {

// Nodes with module, output, FLOPs and bytes; totals by operation; unknown operations with their places. No line is
// wider than `width` columns, but for the places of unknown operations.
std::string graph_text(const graph::Graph& graph, const graph::Checked& checked, const std::string& title,
                       std::size_t width);

nlohmann::ordered_json graph_json(const graph::Graph& graph, const graph::Checked& checked, const std::string& title);

// For `dot -Tsvg`. Parameters, buffers and constants are left out.
std::string graph_dot(const graph::Graph& graph, const graph::Checked& checked, const std::string& title);

}  // namespace strata::report
