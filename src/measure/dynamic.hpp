// SPDX-License-Identifier: Apache-2.0
// --dynamic: one artefact and one process serve several batch sizes. Each size is visited twice, in an order drawn from
// the seed; every result is judged against that size's own reference. What was observed goes into the row's info as raw
// samples; analysis/open_batch.hpp makes figures of it.
#pragma once

#include "measure/interleave.hpp"

namespace strata::measure {

class DynamicPass {
 public:
  // `fixed` judges the case's own batch. Error: a reference that cannot be read.
  static Result<DynamicPass> open(const plan::Bundle& dynamic, const proof::Reference& fixed, std::uint64_t seed);

  // What `participant`'s level did with an open batch; `job` is of the dynamic bundle, `prepare` its expanded prepare
  // command. Afterwards it takes turns with the artefact of the fixed size, which is a trial.
  Result<store::OpenBatchRecord> run(const Participant& participant, const Job& job,
                                     const std::vector<std::string>& prepare, const InterleavePlan& turns,
                                     const Progress& progress) const;

 private:
  DynamicPass(const plan::Bundle& bundle, const proof::Reference& fixed) : bundle_(&bundle), fixed_(&fixed) {}
  Try<void> serve(const Participant& participant, Session& session, store::OpenBatchRecord& out) const;
  Try<void> visit(const Participant& participant, Session& session, int size, int number,
                  store::OpenBatchRecord& out) const;
  Try<void> judge(const Participant& participant, const SafeTensors& outputs, int size, const std::vector<int>& indices,
                  store::SizeVisit& visit) const;
  Try<void> prove_weights(const Participant& participant, Session& session) const;

  const plan::Bundle* bundle_;
  const proof::Reference* fixed_;
  std::map<int, proof::Reference> sizes_;
  std::vector<int> order_;  // of all visits
};

}  // namespace strata::measure
