// SPDX-License-Identifier: Apache-2.0
// The captured graph of a bundle.
#pragma once

#include <filesystem>

#include "common/result.hpp"
#include "graph/graph.hpp"

namespace strata::generate {

// Error: the bundle has none, with capture's reason (environment); or it cannot be read.
Result<graph::Graph> load_graph(const std::filesystem::path& bundle);

}  // namespace strata::generate
