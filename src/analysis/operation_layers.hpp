// SPDX-License-Identifier: Apache-2.0
// Which layers operations belong to at a level that does not know, by the captured graph.
#pragma once

#include <string>
#include <vector>

#include "store/operation_profile.hpp"

namespace strata::analysis {

struct GraphOperation {
  std::string operation, layer;  // "conv2d", "layer1.0.conv1"
};

// Gives operations without a layer that of the graph's operation of the same name, where both sequences have it: the
// longest common subsequence of the names, in-place forms taken as the others, and addmm as linear. A profile in which
// any operation has a layer stays as it is. Takes time in proportion to the product of both lengths; longer ones than
// 5,000 stay, too.
void assign_layers(store::OperationProfile& profile, const std::vector<GraphOperation>& graph);

}  // namespace strata::analysis
