// SPDX-License-Identifier: Apache-2.0
#include "generate/graph_of.hpp"

#include "graph/load.hpp"

namespace strata::generate {

Result<graph::Graph> graph_of(const std::filesystem::path& bundle) {
  return graph::load(bundle);
}

}  // namespace strata::generate
