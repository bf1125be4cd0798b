// SPDX-License-Identifier: Apache-2.0
// The verbs of the program, one file each. Each adds its options to the app; its callback writes the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace strata::cli {

// compare, sweep and train (run_verbs.hpp). `words`: those of the command line, after the program's name.
void add_run_verbs(CLI::App& app, const std::vector<std::string>& words, int& exit_code);
void add_run(CLI::App& app, const std::vector<std::string>& words, int& exit_code);
void add_resume(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_show(CLI::App& app, int& exit_code);
void add_diff(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);
void add_export_data(CLI::App& app, int& exit_code);
void add_export(CLI::App& app, int& exit_code);
void add_graph(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app, int& exit_code);
void add_status(CLI::App& app, int& exit_code);
void add_runs(CLI::App& app, int& exit_code);
void add_cache(CLI::App& app, int& exit_code);
void add_data(CLI::App& app, int& exit_code);
void add_engine(CLI::App& app, int& exit_code);

}  // namespace strata::cli
