// SPDX-License-Identifier: Apache-2.0
// What the captured graph knows of a level's operations: which layers they belong to at a level that does not know, and
// what they compute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/operation_profile.hpp"

namespace strata::analysis {

struct GraphOperation {
  std::string operation, layer;                     // "conv2d", "layer1.0.conv1"
  double flops = 0;                                 // 0: it multiplies no matrices, or it is not known what it computes
  double bytes = 0;                                 // that it reads and writes at least; 0: not known
  std::vector<std::vector<std::int64_t>> shapes{};  // of its inputs; empty: not known
};

// Gives operations without a layer that of the graph's operation of the same name and inputs of the same sizes, where
// both sequences have it: the longest common subsequence, then what is left in its order, since compilers change it.
// In-place forms are taken as the others, addmm and mm as linear; sizes that a level does not tell fit any. A profile
// in which any operation has a layer stays as it is. Takes time in proportion to the product of both lengths; longer
// ones than 5,000 stay, too.
void assign_layers(store::OperationProfile& profile, const std::vector<GraphOperation>& graph);

// Gives a level's products the FLOPs and bytes of the graph's, layer by layer: where a layer has as many of the one as
// of the other, each has its own, in their order; where the level has one, as attention in a single call, it has all.
// Of other layers nothing is known.
void assign_work(store::OperationProfile& profile, const std::vector<GraphOperation>& graph);

}  // namespace strata::analysis
