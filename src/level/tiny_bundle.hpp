// SPDX-License-Identifier: Apache-2.0
// A bundle (docs/bundle.md) small enough to be made without PyTorch: second(relu(first(x))), two linear layers. The
// conformance suite gives it to any level; examples/tiny_mlp.py is the same network as a PyTorch module.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"

namespace strata::level {

// Writes the bundle into `folder` (made if missing). `model` goes into the case: "/path/tiny_mlp.py:build" or a bare
// name. Weights and inputs are drawn from a fixed seed; the reference is computed in double precision.
Result<void> write_tiny_bundle(const std::filesystem::path& folder, const std::string& model);

}  // namespace strata::level
