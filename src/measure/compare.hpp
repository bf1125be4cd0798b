// SPDX-License-Identifier: Apache-2.0
// One case, all its levels: its passes (passes/pass.hpp) one after the other; every result goes into the store as it
// comes.
#pragma once

#include <memory>

#include "measure/evaluate.hpp"
#include "measure/machine_facts.hpp"
#include "measure/participant.hpp"
#include "plan/named_environments.hpp"
#include "plan/options.hpp"
#include "session/warm_processes.hpp"

namespace strata::measure {

struct Setting {
  plan::Options options;
  plan::Effort effort;
  Installation place;
  plan::Environment environment, tools;              // that in which the network is captured; strata's own
  std::vector<plan::NamedEnvironment> environments;  // as --env names them, the one above first; else empty
  std::string run_id;
  std::uint64_t order_seed = 0;
  Json machine;                         // probe::machine()
  const store::Run* resumed = nullptr;  // as it was stored when it was cut off, if this goes on with it

  // Where a level of this run takes part.
  const Installation& place_of(const level::Level& level) const;
  const plan::Environment& environment_of(const level::Level& level) const;
};

struct Outcome {
  bool failed = false;   // a level failed, timed out, crashed or was unequal
  bool missing = false;  // a level named with --levels is unavailable or unsupported
};

// What a stored row does to the outcome of its run; `wanted`: the levels that were named.
void add_outcome(Outcome& outcome, const store::Row& row, const std::vector<std::string>& named_levels);

// Levels that take no part in a case, by name, and why.
using Skipped = std::map<std::string, worker::Failure>;

// What else was captured of a case; nullptr: not needed.
struct CaseExtras {
  const plan::Bundle* deep = nullptr;      // with the outputs of every layer
  const plan::Bundle* strict = nullptr;    // in float32, for a case in another precision
  const Evaluation* evaluation = nullptr;  // the user's score
  Skipped skipped;
  // Of a point of a sweep: processes that go on from point to point. Its levels are proven in them, unless `alone`: in
  // fresh ones, where their memory is seen. Else what they are expected to need at most, by name.
  session::WarmProcesses* warm = nullptr;
  bool alone = true;
  std::map<std::string, double> expected_bytes;
};

// Error: the store's, or a bundle that cannot be read. Failures of single levels are rows, never errors.
Result<Outcome> compare_case(const Setting& setting, const plan::Bundle& bundle, const CaseExtras& extras,
                             const std::vector<level::Level>& levels, MachineFacts& facts, store::Store& store,
                             const Progress& progress);

class CaseRun;

// A case that is measured a restart at a time, others between: a point of a sweep, to which each walk comes once. What
// is referred to outlives it. Errors as above.
class VisitedCase {
 public:
  static Result<std::unique_ptr<VisitedCase>> open(const Setting& setting, const plan::Bundle& bundle,
                                                   const CaseExtras& extras, const std::vector<level::Level>& levels,
                                                   MachineFacts& facts, store::Store& store, const Progress& progress);
  ~VisitedCase();
  // Restarts up to setting.effort.restarts, in its share of setting.effort.budget_s; at the first visit all that comes
  // before and after them, too. The store then holds what is known.
  Result<Outcome> visit();
  const std::vector<Participant>& participants() const;

 private:
  explicit VisitedCase(std::unique_ptr<CaseRun> point);
  std::unique_ptr<CaseRun> point_;
  bool visited_ = false;
};

}  // namespace strata::measure
