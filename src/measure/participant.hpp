// SPDX-License-Identifier: Apache-2.0
// A participant of a comparison: its job, its row in the store, and what was learned on the way.
#pragma once

#include <functional>

#include "proof/train_certificate.hpp"
#include "session/session.hpp"
#include "store/store.hpp"

namespace strata::measure {

using plan::Job;
using session::BlockPlan;
using session::Session;
using session::TrainState;
using session::Try;
using store::Json;
using worker::Failure;

// What the user sees while a comparison runs.
struct Progress {
  std::function<void(const std::string& line)> note;                          // a line that stays
  std::function<void(const std::string& doing, double seconds_left)> status;  // replaced by the next; negative: unknown
  std::function<void(int done, int planned)> restarted;  // restarts of the case that are stored; none: nobody asks
};

// What levels are judged against: the one that the case's mode has.
struct ProofReferences {
  const proof::Reference* outputs = nullptr;  // in the case's precision
  const proof::Reference* strict = nullptr;   // the same in float32; nullptr: that is the case's mode
  const proof::TrainReference *training = nullptr, *strict_training = nullptr;  // the same of a training step
};

struct Participant {
  Job job;
  store::Row row;
  proof::Evidence evidence;
  std::optional<double>
      strict_spread;  // evidence.own_spread of the strict float32 pass, where the case is of another precision
  proof::TrainEvidence training, strict_training;     // the second: of the strict float32 pass
  std::optional<proof::OutputVerdict> deep;           // layer by layer, if asked for
  std::string deep_note;                              // why not, if it could not be done
  std::optional<store::Proof> proven_before;          // the certificate that an earlier process of this run made of it
  std::map<std::string, std::vector<double>> phases;  // of a training step, ms, all restarts together
  std::map<std::string, std::vector<std::string>> joined;
  std::string phases_note;  // why there are none
  bool active = true;       // false: its row has its final state
  double iteration_ns = 0;  // median while warming up, to size blocks
  std::uint64_t peak_bytes = 0;

  std::string name() const { return job.level.name(); }
  // Verdicts of the mode that is timed.
  std::map<std::string, proof::OutputVerdict>& verdicts(const ProofReferences& judge) {
    return judge.strict ? evidence.in_mode : evidence.sets;
  }
  void add_start(const session::StartUp& start, int restart) {
    row.start_up.push_back({.restart = restart,
                            .cold = start.cold,
                            .process_ms = start.process_ms,
                            .library_ms = start.library_ms,
                            .load_ms = start.load_ms,
                            .first_iteration_ms = start.first_iteration_ms,
                            .build_ms = start.build_ms,
                            .weights_ms = start.weights_ms,
                            .total_ms = start.total_ms()});
  }
  proof::Tolerance tolerance() const { return {job.level.reassociates, evidence.own_spread}; }
  // Ends the level's part with a state that is not `measured`.
  void drop(const Failure& why) {
    active = false;
    row.judged = true;
    row.state = why.state;
    row.reason = why.what;
    row.hint = why.hint;
    row.log_tail = why.log_tail;
  }
};

inline State state_of(const proof::OutputVerdict& verdict) {
  return verdict.kind == proof::OutputVerdict::Kind::mistrusted ? State::mistrusted : State::unequal;
}

}  // namespace strata::measure
