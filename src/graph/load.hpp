// SPDX-License-Identifier: Apache-2.0
// Reads graph.json and checks it: every field is there and has its type, every index lies in range, every value is
// defined once and before it is used. Whether operations are known and shapes follow from them is check.hpp's.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"
#include "common/safetensors.hpp"
#include "graph/graph.hpp"

namespace strata::graph {

// `json`: the text of a graph.json; `where` names it in errors.
Result<Graph> parse(std::string_view json, const std::string& where);

// graph.json of a bundle's folder. Error when it has none: why is in bundle.json's `graph`.
Result<Graph> load(const std::filesystem::path& bundle);

// The bundle's graph_constants.safetensors, with every constant of the graph in it; empty when the graph has none.
Result<SafeTensors> open_constants(const Graph& graph, const std::filesystem::path& bundle);

// Every one of `wanted` (the graph's parameters, buffers or constants) is in `file` with its type and shape. More
// tensors in the file are no error.
Result<void> check_tensors(const Graph& graph, const std::vector<Named>& expected, const SafeTensors& file);

}  // namespace strata::graph
