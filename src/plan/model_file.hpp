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

// Lets the process write below `folders` and into temporary files of its own, and nowhere else (common/confine.hpp).
Result<void> confine(worker::Launch& launch, const Installation& place,
                     const std::vector<std::filesystem::path>& folders);

// What a user should know before `model` runs; empty: it is no file.
std::string notice_of(const std::string& model);

}  // namespace strata::plan
