// SPDX-License-Identifier: Apache-2.0
// Writes the training graph of a captured network, for tests that run it with PyTorch's operators:
//   strata_training_graph BUNDLE LOSS OUT      reads BUNDLE/graph.json, writes OUT (a graph.json)
// Prints the reason and exits with 1 if there is none.
#include <fmt/format.h>

#include <fstream>

#include "graph/backward/backward.hpp"
#include "graph/check.hpp"
#include "graph/load.hpp"
#include "graph/write.hpp"

namespace {

int refuse(const strata::Error& error) {
  fmt::print(stderr, "{}\n", error.what);
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  using namespace strata::graph;
  if (count != 4) return refuse({"usage: strata_training_graph BUNDLE LOSS OUT", ""});
  const auto network = load(arguments[1]);
  if (!network) return refuse(network.error());
  const auto loss = loss_of(*network, arguments[2]);
  if (!loss) return refuse(loss.error());
  const auto training = differentiate(*network, *loss);
  if (!training) return refuse(training.error());
  const auto checked = check(training->graph);
  if (!checked) return refuse(checked.error());
  if (!checked->unknown.empty()) return refuse({"the training graph has an operation that no table knows", ""});
  std::ofstream(arguments[3]) << to_text(training->graph);
  fmt::print("{} forward, {} loss, {} backward nodes, {} FLOPs\n", training->forward_nodes,
             training->loss_nodes - training->forward_nodes, training->graph.nodes.size() - training->loss_nodes,
             checked->total.flops);
  return 0;
}
