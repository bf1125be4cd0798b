// SPDX-License-Identifier: Apache-2.0
// The verbs of the program, one file each. Each adds its options to the app; its callback writes the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "common/result.hpp"

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
void add_pack(CLI::App& app, int& exit_code);
void add_status(CLI::App& app, int& exit_code);
void add_runs(CLI::App& app, int& exit_code);
void add_cache(CLI::App& app, int& exit_code);
void add_data(CLI::App& app, int& exit_code);
void add_level_verbs(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_engine(CLI::App& app, int& exit_code);

// What verbs of two files share. The list of stored runs, under this name: `list runs` and `runs list` are one.
void add_list_of_runs(CLI::App& verb, const char* name, int& exit_code);
// Every run of these stores comes to `into`, which is made where it is missing; says how many.
Result<int> join_stores(const std::vector<std::string>& files, const std::filesystem::path& into);
// Measures and stores the process effect for one thread and for all cores.
Result<int> run_calibration(const std::string& store_path);

}  // namespace strata::cli
