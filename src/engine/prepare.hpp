// SPDX-License-Identifier: Apache-2.0
// From a request to what can run: levels, environments, cases, effort, all of it checked before anything is measured.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/events.hpp"
#include "engine/run_context.hpp"
#include "level/level.hpp"
#include "measure/compare.hpp"
#include "store/store.hpp"

namespace strata::engine {

struct Prepared {
  measure::Setting setting;
  std::vector<core::CaseSpec> specs;  // of the cases, in the order in which they run
  std::vector<level::Level> levels;
  std::vector<level::BrokenLevel> problems;
  std::optional<measure::ScoreFile> score;
};

// What `request` needs. `context` outlives it: the setting refers to the run that goes on.
Result<Prepared> prepare(const CompareRequest& request, const RunContext& context, EventSink& events);

// What is known of a case before anything of it is captured, for plans that are printed: a spec as a bundle that is not
// captured yet, with its question as far as it is known.
plan::Bundle provisional_bundle(const core::CaseSpec& spec);

// Bytes that a captured case of this network has on disk; 0: none is captured.
double captured_bytes(const std::filesystem::path& cache, const std::string& model);

// Levels that run a case, and why others do not.
struct Participants {
  std::vector<std::string> names;
  std::vector<std::string> without;
};
Participants participants_of(const Prepared& ready, const plan::Bundle& bundle);

// An interval width that the process effect makes unreachable is refused before an hour is spent on it; `store`: which
// may know that effect.
Result<void> check_ci_width(const Prepared& ready, const std::optional<store::Store>& store);

// "20261121-061500-3fa2": of a run that begins now.
std::string new_run_id();

// The run as it begins in the store.
store::Run describe_run(const Prepared& ready, const CompareRequest& request, const RunContext& context);

// A run goes on where and with what it began: other processors or another PyTorch would be mixed into its numbers.
Result<void> check_resumed(const Prepared& ready, const RunContext& context);

}  // namespace strata::engine
