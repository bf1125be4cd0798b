// SPDX-License-Identifier: Apache-2.0
// The variant `measured`: kernels chosen by timing each in the program itself, on this machine.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/result.hpp"
#include "compiler/program.hpp"

namespace strata::static_program {

// A program is made with every kernel wherever it can run, and each of its steps timed within whole runs (least of
// many), so that weights are as cold as in use: {node: {kernel: microseconds}}, of convolutions and linear layers.
// Files go into `folder`. Errors: of the compiler, or the program's own.
Result<nlohmann::json> times_of_kernels(const std::filesystem::path& bundle, const std::filesystem::path& folder);

}  // namespace strata::static_program
