// SPDX-License-Identifier: Apache-2.0
// Several requests in flight (--clients): a pass of its own after the turns, fresh processes in each repetition, all on
// the same cores.
#pragma once

#include "measure/participant.hpp"
#include "stats/clients.hpp"

namespace strata::measure {

struct ServePlan {
  std::vector<int> clients;
  int repetitions = 3;
  double seconds = 9;  // measured, of each level and number of clients, all repetitions together
  int threads = 1;     // of the case: shared by the clients of a level, and the number of cores
  std::uint64_t seed = 0;
};

// Fills `clients` in the info of every row that is still active and no harness. What goes wrong is said there and
// costs the row nothing else; true: some result was wrong, or a worker failed. Levels take turns by the interleaver.
Result<bool> serve_clients(std::vector<Participant>& participants, const proof::Reference& reference,
                           const ServePlan& plan, const Progress& progress);

}  // namespace strata::measure
