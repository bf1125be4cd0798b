// SPDX-License-Identifier: Apache-2.0
// Writes a captured graph as C++ that calls ATen, one call an operation: libtorch/aten_network.hpp says what it gives.
// Modes infer and train (through autograd).
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"
#include "graph/graph.hpp"

namespace strata::generate {

// The file network.cpp. `what`: for its first line, the case's id. Errors: an operation that ATen does not have, or
// that cannot be trained as it stands, with its place in the model.
Result<std::string> libtorch_source(const graph::Graph& graph, const std::string& what);

// A folder that builds and runs with LibTorch alone: network.cpp, a program around it, weights and reference. `root`:
// strata's own tree; `threads`: of the program where none are asked for, 0: as LibTorch says. Returns how many
// operations a run has.
Result<std::size_t> libtorch_into(const std::filesystem::path& folder, const std::filesystem::path& bundle,
                                  const std::filesystem::path& root, int threads);

}  // namespace strata::generate
