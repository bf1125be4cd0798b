// SPDX-License-Identifier: Apache-2.0
#include "generate/load_graph.hpp"

#include "graph/load.hpp"

namespace strata::generate {

Result<graph::Graph> load_graph(const std::filesystem::path& bundle) {
  return graph::load(bundle);
}

}  // namespace strata::generate
