// SPDX-License-Identifier: Apache-2.0
// This machine's process effect: how much processes that run the same program differ for as long as they live
// (docs/measuring.md).
#pragma once

#include "measure/participant.hpp"

namespace strata::measure {

// Eight warm workers of one level take turns in 20 ms blocks, for `seconds` in each of two sessions. Not stored.
// Errors: a worker that fails, too little memory for eight workers, interrupted.
Result<store::ProcessEffect> calibrate(const Job& job, int threads, double seconds, const Json& machine,
                                       const Progress& progress);

// The process effect of this machine for a number of threads: calibrated, or assumed. `source` is for people.
struct ProcessSigma {
  double value = 0;
  std::string source;
};
Result<ProcessSigma> process_sigma(const store::Store& store, const Json& machine, int threads);
std::string machine_key(const Json& machine);

}  // namespace strata::measure
