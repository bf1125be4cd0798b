// SPDX-License-Identifier: Apache-2.0
// The verbs that make a run: compare, sweep, train.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/console.hpp"
#include "cli/run_arguments.hpp"
#include "engine/case_plan.hpp"
#include "engine/run_request.hpp"
#include "report/document.hpp"

namespace strata::cli {

// Each checks, runs, shows: the exit code, or what kept it from its end.
Result<int> run_compare(const requests::CompareRequest& request, RunArguments& a);
// `compare --command`: nothing is stored of it.
Result<int> run_commands(const requests::CommandsRequest& request, const RunArguments& a);
Result<int> run_sweep(const requests::SweepRequest& request, RunArguments& a);
Result<int> run_train(const requests::TrainRequest& request, RunArguments& a);
// Whichever it is. Error: it makes no run.
Result<int> run_request(const requests::Request& request, RunArguments& a);

// `strata resume` of a suite's run; empty format: as it began.
struct ResumedWith {
  std::string store, format, python;
};
Result<int> resume_suite(store::Run run, const ResumedWith& with);

// --shard, --on slurm (docs/cluster.md): sends the shards where --on says so, or finds the one that is this process's
// own. The exit code where nothing is left to do here, which is said. Errors: engine::send_shards' and
// engine::own_shard's.
Result<std::optional<int>> split_run(const requests::Request& request, RunArguments& a,
                                     std::optional<engine::OwnShard>& own);

// What a person sees of a verb's run.
struct RunView {
  std::function<Result<int>(const engine::Prepared&)> print_plan;            // in its place; the exit code
  std::function<Result<void>(store::Store&, const measure::Setting&)> show;  // what is stored of it
  ProgressLine::SoFar (*so_far)(store::Store&) = nullptr;                    // after each restart; none: nothing
  std::string kept = "what was measured is stored", done = "measured";       // once it is interrupted
};
Result<int> run_as(const requests::CompareRequest& request, const RunArguments& a, engine::RunKind kind,
                   const RunView& view);

// The document that `make` makes of the stored run: on standard output, its summary in the list of runs, as a page.
using MakeDocument = std::function<Result<document::Document>(const store::Run&)>;
Result<void> show_document(const RunArguments& a, store::Store& store, const measure::Setting& setting,
                           const MakeDocument& make);

// --dry-run of a comparison or a sweep: what would run, as `plan` says, with what it is likely to take; the exit code.
// Error: what a run would refuse of the networks.
Result<int> print_plan(const engine::Prepared& ready, const RunArguments& a, bool of_sweep,
                       const std::function<engine::CasePlan(engine::EventSink&)>& plan);

}  // namespace strata::cli
