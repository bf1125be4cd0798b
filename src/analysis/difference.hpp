// SPDX-License-Identifier: Apache-2.0
// Two stored runs of the same cases against each other, level by level (docs/results_schema.md, strata.diff/1, member
// by member under the same names). They were not measured in turns, so that what changed on the machine between them
// counts as a change of a level; a level's speedup over the reference of its own run does not have that in it.
#pragma once

#include "analysis/gate.hpp"
#include "analysis/result.hpp"
#include "store/record.hpp"

namespace strata::analysis {

// What of a run may make its times others', beside the levels.
struct ComparedRun {
  std::string run, started, torch, cpu, strata;
};

struct LeftOutCase {
  std::string case_id, reason;
};

struct LevelDifference {
  std::string case_id, key, level, variant, environment;
  OptionalNumber before_ms, after_ms;
  std::optional<Estimate> ratio, speedup_change;
  std::string verdict;  // of the ratio; else `not_reliable`, `absent` or the state that the later row is in
  Gate gate = Gate::not_compared;
  std::string reason;

  std::string name() const { return core::ParticipantId{level, variant, environment}.name(); }
};

struct DifferenceResult {
  ComparedRun before, after;
  std::vector<std::string> notes;  // what else is another between the runs, and what of a case's network
  double threshold = 0;
  int cases = 0;
  std::vector<LeftOutCase> without;
  std::vector<LevelDifference> levels;
  int slower = 0, faster = 0, lost = 0;        // by verdict; lost: without a number now
  int beyond = 0, open = 0, not_compared = 0;  // by gate
};

// Cases are matched by key, and else by their question without the weights; what of the network was changed is noted.
// `threshold`: gate.hpp. Nothing is said of a case that was not reliable in one of the runs.
DifferenceResult difference_of(const store::Run& before, const store::Run& after, double threshold);

nlohmann::json to_json(const DifferenceResult& difference);

}  // namespace strata::analysis
