// SPDX-License-Identifier: Apache-2.0
// A comparison as `compare` runs it, `compare --dry-run` prints it and `resume` goes on with it.
#pragma once

#include "cli/compare_options.hpp"
#include "level/level.hpp"
#include "measure/compare.hpp"

namespace strata::cli {

// Everything that a run needs and that can be wrong before anything is measured.
struct Prepared {
  measure::Setting setting;
  std::vector<nlohmann::json> specs;  // of the cases, in the order in which they run
  std::vector<level::Level> levels;
  std::vector<level::Problem> problems;
  std::optional<measure::ScoreFile> score;
};

// What `a` needs, all of it checked.
Result<Prepared> get_ready(const CompareArguments& a);

// "20261121-061500-3fa2": of a run that begins now.
std::string new_run_id();

// The run as it begins in the store.
store::Run describe_run(const Prepared& ready, const CompareArguments& a);

// A run goes on where and with what it began: other processors or another PyTorch would be mixed into its numbers.
Result<void> check_resumed(const Prepared& ready, const CompareArguments& a);

// Checks, runs, shows: the exit code, or what kept it from its end. `a.options` is filled from its texts.
Result<int> run_compare(CompareArguments& a);

// The same, where the error is said.
int compare(CompareArguments& a);

// What would run, with what it is likely to take; the exit code.
int print_plan(const Prepared& ready, const CompareArguments& a);

// The same in a line.
struct PlanSummary {
  std::size_t cases = 0;
  double seconds = 0, bytes = 0;  // of all cases; bytes on disk, 0: not known
  std::vector<std::string> levels;
  std::string basis;  // where the seconds come from
};
PlanSummary summarise_plan(const Prepared& ready, const CompareArguments& a);

}  // namespace strata::cli
