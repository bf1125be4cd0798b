// SPDX-License-Identifier: Apache-2.0
// From a request to its end: prepared, run, and what came of it in the store.
#pragma once

#include <filesystem>
#include <functional>

#include "engine/shard.hpp"
#include "engine/stored_run.hpp"
#include "engine/training_plan.hpp"

namespace strata::engine {

// What tells one verb's run from another's.
struct RunKind {
  std::string verb;                                  // of the stored settings; empty: compare
  std::function<Result<void>(Prepared&)> arrange{};  // the cases and their effort, before anything is planned
  std::function<Result<measure::Outcome>(Prepared&, measure::MachineFacts&, store::Store&, StoredRun&, EventSink&)>
      measure{};
  // What is stored of the run beside all verbs' own facts; nullopt: nothing, or what it has, where it goes on.
  nlohmann::json request{};
  std::optional<store::ShardFacts> shard{};
  std::optional<store::TrainingFacts> training{};
  std::optional<store::Kept> kept{};
};

RunKind comparison(const CompareRequest& request);

// A sweep's points, corners first, the rest in an order drawn from the seed; a shard's own, if it is one. `request`
// outlives it.
RunKind sweep(const SweepRequest& request, const RunContext& context, const std::optional<OwnShard>& own);

// A training at the levels that train. `plan` outlives it, and gets the images that --scale leaves.
RunKind training(TrainingPlan& plan, const RunContext& context, const std::optional<OwnShard>& own);

// A training while it runs (train_runner.cpp): data, capture, initial weights, a training of each initialisation. Every
// finished epoch is in the store. `plan` gets the images that --scale leaves. Error: nothing could be trained, or the
// store's.
Result<measure::Outcome> run_training(TrainingPlan& plan, const Prepared& ready, measure::MachineFacts& facts,
                                      store::Store& store, StoredRun& stored, EventSink& events);

// All that can be wrong is checked, nothing is measured. `store` need not exist.
Result<Prepared> prepare_run(const CompareRequest& request, const RunContext& context,
                             const std::filesystem::path& store, const RunKind& kind, EventSink& events);

// Runs it into the store, which is opened or made.
Result<EndedRun> run_prepared(Prepared& ready, const CompareRequest& request, const RunContext& context,
                              store::Store& store, const RunKind& kind, EventSink& events);

// A run that can go on. Errors: there is no such run, it is being measured, it came from another store, it does not say
// what it was asked.
Result<store::Run> resumable_run(const std::filesystem::path& store, const std::string& which);

// Set-up has to know the interpreters before this program starts. Error: the run began with others.
Result<void> check_interpreters(const std::string& run_id, const CompareRequest& began, const std::string& python,
                                const std::vector<plan::NamedPython>& now);

}  // namespace strata::engine
