// SPDX-License-Identifier: Apache-2.0
// The weights that every level begins a repeat with, as the model's own code or a scheme makes them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/places.hpp"
#include "common/result.hpp"
#include "plan/bundle.hpp"

namespace strata::training {

// One file a repeat, by `python -m capture.initial`, from the case's seed and those after it. `scheme`: see --init.
// Error: no such scheme, or what the network's code said.
Result<std::vector<std::filesystem::path>> initial_weights(const plan::Bundle& bundle, const std::string& scheme,
                                                           int repeats, const std::filesystem::path& folder,
                                                           const Installation& place);

}  // namespace strata::training
