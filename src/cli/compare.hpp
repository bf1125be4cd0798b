// SPDX-License-Identifier: Apache-2.0
// A comparison as `compare` runs it, `compare --dry-run` prints it and `resume` goes on with it.
#pragma once

#include <functional>

#include "cli/compare_options.hpp"
#include "engine/case_plan.hpp"
#include "engine/run_request.hpp"

namespace strata::cli {

// What `a` needs, all of it checked.
Result<engine::Prepared> prepare(const CompareArguments& a);

// Checks, runs, shows: the exit code, or what kept it from its end. `a.options` is filled from its texts.
using Show = std::function<int(const CompareArguments&, store::Store&, const measure::Setting&)>;
Result<int> run_as(CompareArguments& a, const engine::RunKind& kind, const Show& show);
Result<int> run_compare(CompareArguments& a);

// The same, where the error is said.
int compare(CompareArguments& a);

// What would run, with what it is likely to take; the exit code. Error: what a run would refuse of the networks.
Result<int> print_plan(const engine::Prepared& ready, const CompareArguments& a);

// The same, not printed. `events` as in engine::plan_sweep.
engine::CasePlan plan_of(const engine::Prepared& ready, const CompareArguments& a, engine::EventSink* events);

}  // namespace strata::cli
