// SPDX-License-Identifier: Apache-2.0
// Interleaved measuring: fresh processes per restart, short blocks in a balanced order, those that wait are stopped,
// one output checked in every block. Every block is in the store before the next one starts.
#pragma once

#include "measure/case_sink.hpp"
#include "measure/participant.hpp"
#include "plan/options.hpp"
#include "probe/load.hpp"
#include "session/warm_processes.hpp"
#include "stats/disturbed.hpp"

namespace strata::measure {

struct InterleavePlan {
  plan::Effort effort;
  std::uint64_t seed = 0;  // of the order of levels, inputs and checks
  stats::CoreBudget room;  // threads, and what they run on
  bool twice = false;      // A/A: two workers of each level
  bool together = true;    // false: memory does not hold all workers at once, so each has its restarts alone
  double process_sigma = 0.03;
  const store::Trust* trust = nullptr;   // of the case, for what earlier runs showed (learn.hpp); none: nothing did
  std::size_t reference = 0;             // index of the reference level
  int first = 0;                         // restarts that are stored already; their blocks lie in the participants
  std::vector<probe::Load> load_before;  // of others in those
  // After each restart: its number and what others had meanwhile (one entry for each group of levels that ran alone).
  std::function<Result<void>(int, const std::vector<probe::Load>&)> finished;
  session::WarmProcesses* warm = nullptr;  // of a walk of a sweep; none: each restart has fresh processes
  CaseSink* sink = nullptr;  // none: a trial (tune.hpp); its blocks stay in the participants, and nothing is judged

  bool trial() const { return !sink; }
};

struct InterleaveResult {
  int restarts = 0;               // that were begun
  std::vector<probe::Load> load;  // of others while each restart was measured
  bool precision_reached = false;
  // Levels whose restarts part by more than noise and the process effect explain, or that lost most blocks, each with
  // why: "openvino: 10.7% between restarts, 2.1% assumed".
  std::vector<std::string> too_busy;
};

// Runs all participants that are still active. A participant that fails is dropped with its state; an error is the
// sink's.
Result<InterleaveResult> run_interleaved(std::vector<Participant>& participants, const ProofReferences& judge,
                                         const InterleavePlan& plan, const Progress& progress);

}  // namespace strata::measure
