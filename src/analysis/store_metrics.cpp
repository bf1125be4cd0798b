// SPDX-License-Identifier: Apache-2.0
#include "analysis/store_metrics.hpp"

#include "analysis/metrics.hpp"
#include "measure/judge_stored.hpp"

namespace strata::analysis {

Result<void> store_metrics(store::Store& store, const std::string& run_id, const std::string& case_key) {
  auto run = STRATA_TRY(store.load_case(run_id, case_key));
  measure::judge_stored(run);
  for (const auto& one : run.cases) STRATA_TRY(store.set_metrics(run_id, one.key, metrics_of(run, one)));
  return {};
}

Result<void> store_metrics(store::Store& store, const std::string& run_id) {
  const auto cases = STRATA_TRY(store.run_cases(run_id));
  for (const auto& one : cases) STRATA_TRY(store_metrics(store, run_id, one.key));
  return {};
}

}  // namespace strata::analysis
