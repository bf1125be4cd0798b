// SPDX-License-Identifier: Apache-2.0
// What levels that run the captured graph lack of a network, said before anything is run.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "level/level.hpp"

namespace strata::plan {

struct MissingSupport {
  std::string level;
  std::vector<std::string> operations;  // ATen's names, sorted
  std::string words;                    // "gru (gru, rnn.py:11), lstm (lstm, rnn.py:10); 'ids' is int64 [1, 128]"
};

// One for each level whose `operations` are listed, that has the graph's mode and the device, and that lacks something:
// operations, in mode train also those without a backward rule, and inputs or outputs that a generated program cannot
// have. `graph`: the network as captured, not a training step.
std::vector<MissingSupport> missing_support(const graph::Graph& graph, const std::vector<level::Level>& levels,
                                            const std::string& device);

}  // namespace strata::plan
