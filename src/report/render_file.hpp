// SPDX-License-Identifier: Apache-2.0
// From results to any format, and to a file: what `strata report` and `--format` do.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/result.hpp"
#include "common/result.hpp"
#include "report/terminal.hpp"

namespace strata::report {

// Reads a result of schema strata.run/1; an array of results gives several. Fails on other schemas, on broken JSON, and
// on the first value that is of another type than docs/results_schema.md says.
Result<std::vector<analysis::RunResult>> read_results(const std::filesystem::path& path);

// Runs as one page that needs nothing beside it. Error: there is no run, or plotly.min.js cannot be read.
Result<std::string> html(const std::vector<analysis::RunResult>& runs, const std::filesystem::path& plotly_js);

// format: text, ledger, certificate, html, md, csv, json. Several runs are joined, except that html and md make one
// document and json one array.
Result<std::string> render(const std::vector<analysis::RunResult>& runs, const std::string& format,
                           const std::filesystem::path& plotly_js, const TerminalStyle& style);

// Why a file cannot be written there, as wrong usage of `option`; for before anything is measured. Makes nothing.
Result<void> check_writable(const std::filesystem::path& path, const std::string& option);

// csv.cpp: a run as CSV, one line for each case and level, every number.
// Columns are named after the JSON's paths, with units; unknown is an empty field.
std::string csv(const analysis::RunResult& run);

}  // namespace strata::report
