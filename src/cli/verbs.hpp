// SPDX-License-Identifier: Apache-2.0
// The verbs of the program, one file each. Each adds its options to the app; its callback writes the exit code.
#pragma once

#include <CLI/CLI.hpp>

namespace strata::cli {

void add_compare(CLI::App& app, int& exit_code, int argc, char** argv);
void add_train(CLI::App& app, int& exit_code, int argc, char** argv);
void add_sweep(CLI::App& app, int& exit_code, int argc, char** argv);
void add_run(CLI::App& app, int& exit_code, int argc, char** argv);
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
