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

struct Initial {
  std::string scheme = "torch";
  std::filesystem::path file;  // in its place, if any
  std::string name;            // of the case: the scheme, or "file:NAME-HASH"
};

// What --init says: a scheme, which only capture.initial knows, or a file of weights (one that ends in .safetensors).
// Error: that file cannot be read.
Result<Initial> read_init(const std::string& text);

// One file a repeat, by `python -m capture.initial`, from the case's seed and those after it.
// Error: no such scheme, weights that do not fit, or what the network's code said.
Result<std::vector<std::filesystem::path>> initial_weights(const plan::Bundle& bundle, const Initial& initial,
                                                           int repeats, const std::filesystem::path& folder,
                                                           const Installation& place);

}  // namespace strata::training
