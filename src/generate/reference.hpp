// SPDX-License-Identifier: Apache-2.0
// The stored input, output and allowed error that a generated program compares itself with.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"
#include "graph/graph.hpp"

namespace strata::generate {

// From the bundle's first input: `input/<name>` as it is, `output/<name>` the reference in float64, `bound/<name>` one
// float64: 8 times the largest relative error ||a - w|| / ||w|| of the bundle's sound runs in the case's precision
// (docs/proof.md).
Result<void> write_reference(const std::filesystem::path& file, const graph::Graph& graph,
                             const std::filesystem::path& bundle, const std::string& precision);

// The same of a training step: labels, the loss and the gradient of each parameter ("output/loss",
// "output/grad:<name>"), and bounds on ||got - wanted||, as the proof of training has them.
Result<void> write_training_reference(const std::filesystem::path& file, const graph::Graph& graph,
                                      const std::filesystem::path& bundle, const std::string& precision);

}  // namespace strata::generate
