// SPDX-License-Identifier: Apache-2.0
// What the repetitions of each number of clients say (measure/serve.hpp stores them): rates and quantiles with
// intervals.
#pragma once

#include "analysis/result.hpp"

namespace strata::analysis {

// `batch`: inputs of a request; not `reliable`: others had the cores.
Clients clients_of(const store::ServedClients& served, double batch, double process_sigma, bool reliable);

}  // namespace strata::analysis
