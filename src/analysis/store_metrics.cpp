// SPDX-License-Identifier: Apache-2.0
#include "analysis/store_metrics.hpp"

#include "analysis/metrics.hpp"
#include "measure/judge_stored.hpp"

namespace strata::analysis {

Result<void> store_metrics(store::Store& store, const std::string& run_id, const std::string& case_key) {
  auto run = STRATA_TRY(store.load_case(run_id, case_key));
  measure::judge_stored(run);
  for (const auto& run_case : run.cases) STRATA_TRY(store.set_metrics(run_id, run_case.key, metrics_of(run, run_case)));
  return {};
}

Result<void> store_metrics(store::Store& store, const std::string& run_id) {
  const auto cases = STRATA_TRY(store.run_cases(run_id));
  for (const auto& run_case : cases) STRATA_TRY(store_metrics(store, run_id, run_case.key));
  return {};
}

}  // namespace strata::analysis
