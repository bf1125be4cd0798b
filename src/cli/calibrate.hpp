// SPDX-License-Identifier: Apache-2.0
// `strata doctor --calibrate`.
#pragma once

#include <string>

namespace strata::cli {

// Measures and stores the process effect for one thread and for all cores. Returns the exit code.
int run_calibration(const std::string& store_path);

}  // namespace strata::cli
