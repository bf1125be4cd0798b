// SPDX-License-Identifier: Apache-2.0
// A comparison as `compare` runs it, `compare --dry-run` prints it and `resume` goes on with it.
#pragma once

#include <functional>

#include "cli/compare_options.hpp"
#include "level/level.hpp"
#include "measure/compare.hpp"

namespace strata::cli {

class ProgressLine;
class StoredRun;

// Everything that a run needs and that can be wrong before anything is measured.
struct Prepared {
  measure::Setting setting;
  std::vector<nlohmann::json> specs;  // of the cases, in the order in which they run
  std::vector<level::Level> levels;
  std::vector<level::BrokenLevel> problems;
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

// What tells a sweep from a comparison.
struct RunKind {
  std::string verb;  // of the stored settings; empty: compare
  std::function<Result<void>(Prepared&)>
      arrange;  // the cases and their effort, before anything is planned; may be empty
  std::function<Result<measure::Outcome>(Prepared&, measure::MachineFacts&, store::Store&, StoredRun&, ProgressLine&)>
      run_cases;
  std::function<int(const CompareArguments&, store::Store&, const measure::Setting&)> show;
  nlohmann::json settings = nlohmann::json::object();  // that are stored of the run beside compare's
};

// Checks, runs, shows: the exit code, or what kept it from its end. `a.options` is filled from its texts.
Result<int> run_as(CompareArguments& a, const RunKind& kind);
Result<int> run_compare(CompareArguments& a);

// The same, where the error is said.
int compare(CompareArguments& a);

// What would run, with what it is likely to take; the exit code. Error: what a run would refuse of the networks.
Result<int> print_plan(const Prepared& ready, const CompareArguments& a);

// The same in a line.
struct PlanSummary {
  std::size_t cases = 0;
  double seconds = 0, bytes = 0;  // of all cases; bytes on disk, 0: not known
  std::vector<std::string> levels;
  std::string basis;  // where the seconds come from
};
PlanSummary summarise_plan(const Prepared& ready, const CompareArguments& a);

}  // namespace strata::cli
