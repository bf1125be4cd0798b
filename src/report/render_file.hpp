// SPDX-License-Identifier: Apache-2.0
// From result objects to any format, and to a file: what `strata report --from-json FILE -o OUT` and `--format` do.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "report/access.hpp"
#include "report/terminal.hpp"

namespace strata::report {

// Reads a result of schema strata.run/1; an array of results gives several. Fails on other schemas and on broken JSON.
Result<std::vector<Json>> read_results(const std::filesystem::path& path);

// format: text, ledger, certificate, html, md, csv, json. Several runs are joined, except that html makes one page and
// json one array.
Result<std::string> render(const std::vector<Json>& runs, const std::string& format,
                           const std::filesystem::path& plotly_js, const TerminalStyle& style);

// Writes by a temporary file beside it, so that a reader never sees half a report.
Result<void> write_whole(const std::filesystem::path& path, const std::string& content);

// The above together; `out` empty: standard output. Returns the exit code, with the message on standard error.
int render_file(const std::filesystem::path& in, const std::string& format, const std::filesystem::path& out,
                const std::filesystem::path& plotly_js, const TerminalStyle& style);

}  // namespace strata::report
