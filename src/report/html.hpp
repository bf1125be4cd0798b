// SPDX-License-Identifier: Apache-2.0
// Runs as one self-contained HTML page: works offline, without scripts (tables), by keyboard and by screen reader.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "report/access.hpp"

namespace strata::report {

// `plotly_js`: plotly.min.js, written into the page. Fails if it cannot be read or there is no run.
Result<std::string> html(const std::vector<Json>& runs, const std::filesystem::path& plotly_js);

}  // namespace strata::report
