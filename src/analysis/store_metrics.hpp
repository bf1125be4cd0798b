// SPDX-License-Identifier: Apache-2.0
// Brings the metrics of stored runs up to date with what is stored of their samples.
#pragma once

#include "store/store.hpp"

namespace strata::analysis {

// Of one case, when it has ended. Errors: the store's.
Result<void> store_metrics(store::Store& store, const std::string& run_id, const std::string& case_key);
// Of all cases of a run; rows that it left without a verdict are judged from their blocks.
Result<void> store_metrics(store::Store& store, const std::string& run_id);

}  // namespace strata::analysis
