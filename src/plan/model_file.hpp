// SPDX-License-Identifier: Apache-2.0
// Networks that come as a file (.pt2, .pt, .onnx): programs that somebody else may have written. What such a file could
// do is checked before it is loaded (sdk/python), what is left is confined, and the user is told.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/places.hpp"
#include "common/result.hpp"
#include "worker/worker.hpp"

namespace strata::plan {

bool is_model_file(const std::string& model);  // told by its ending

// "PACKAGE:NAME", as "timm:convnext_tiny?in_chans=1": a network of a Python package, with random weights. Which
// packages there are is written in models/packages.json; what the name says is read where the network is built
// (sdk/python/strata_sdk/package_models.py).
bool is_of_package(const std::string& model);

// Lets the process write below `folders` and into temporary files of its own, and nowhere else (common/confine.hpp).
Result<void> confine(worker::Launch& launch, const Installation& place,
                     const std::vector<std::filesystem::path>& folders);

// What a user should know before `model` runs; empty: it is no file.
std::string notice_of(const std::string& model);

}  // namespace strata::plan
