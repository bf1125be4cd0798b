// SPDX-License-Identifier: Apache-2.0
// The verbs that make a run: compare, sweep, train.
#pragma once

#include "cli/run_arguments.hpp"
#include "engine/case_plan.hpp"
#include "engine/run_request.hpp"

namespace strata::cli {

// Each checks, runs, shows: the exit code, or what kept it from its end.
Result<int> run_compare(const requests::CompareRequest& request, RunArguments& a);
Result<int> run_sweep(requests::SweepRequest& request, RunArguments& a);
Result<int> run_train(requests::TrainRequest& request, RunArguments& a);
// Whichever it is. Error: it makes no run.
Result<int> run_request(requests::Request& request, RunArguments& a);

// What a comparison and a sweep have in common. `print_plan`: of --dry-run.
struct Shown {
  std::function<int(const RunArguments&, store::Store&, const measure::Setting&)> result;
  std::function<engine::CasePlan(const engine::Prepared&, engine::EventSink*)> plan;
  bool of_sweep = false;
};
Result<int> run_as(const requests::CompareRequest& request, RunArguments& a, engine::RunKind kind, const Shown& shown);

// --dry-run: what would run, with what it is likely to take; the exit code. Error: what a run would refuse of the
// networks.
Result<int> print_plan(const engine::Prepared& ready, const RunArguments& a, const Shown& shown);

}  // namespace strata::cli
