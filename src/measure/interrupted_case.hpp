// SPDX-License-Identifier: Apache-2.0
// A case in which a run was cut off: its whole restarts are kept, and the comparison goes on after them.
#pragma once

#include "measure/compare.hpp"
#include "measure/interleave.hpp"

namespace strata::measure {

class InterruptedCase {
 public:
  // What is stored of the case in the run that goes on; nothing where none does, or the case was not begun. Drops what
  // belongs to no whole restart. With --tuned everything, since what a level's best variant was chosen from is not
  // stored. Error: the store's; the network is another now.
  static Result<InterruptedCase> open(const Setting& setting, const store::Case& now, store::Store& store);

  // What the run has of the case where it goes on after it: after a whole restart, or in a training; nullptr: nothing.
  const store::Case* before() const { return trains_ || !loads_.empty() ? stored_ : nullptr; }
  // Gives a participant the row that it had; false: it has none. A level that had dropped out of the restarts stays
  // out.
  bool restore_row(Participant& participant) const;
  // Whether the run that goes on has proven that it does equal work, deterministic and to its end, even if it was cut
  // off before the first restart was whole: then the participant has what was found there, and its certificate goes on
  // from that one (proof::continued).
  bool restore_proof(Participant& participant) const;
  // Blocks and starts of the whole restarts, for active participants.
  void add_to(std::vector<Participant>& participants, InterleavePlan& plan) const;

 private:
  int restarts() const { return static_cast<int>(loads_.size()); }
  // By its name; nullptr: none.
  static const store::Row* row_of(const store::Case* stored, const Participant& participant);

  const store::Case* stored_ = nullptr;          // what the run has of the case, whole restarts or none
  bool trains_ = false;                          // a whole training, which has epochs and no restarts
  std::vector<std::vector<probe::Load>> loads_;  // of each whole restart
};

}  // namespace strata::measure
