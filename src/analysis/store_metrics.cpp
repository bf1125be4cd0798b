// SPDX-License-Identifier: Apache-2.0
#include "analysis/store_metrics.hpp"

#include "analysis/metrics.hpp"
#include "measure/judge_stored.hpp"

namespace strata::analysis {

Result<void> store_metrics(store::Store& store, const std::string& run_id, const std::string& case_key) {
  auto run = store.load_case(run_id, case_key);
  if (!run) return tl::unexpected(run.error());
  measure::judge_stored(*run);
  for (const auto& one : run->cases)
    if (auto written = store.set_metrics(run_id, one.key, metrics_of(*run, one)); !written) return written;
  return {};
}

Result<void> store_metrics(store::Store& store, const std::string& run_id) {
  const auto cases = store.run_cases(run_id);
  if (!cases) return tl::unexpected(cases.error());
  for (const auto& one : *cases)
    if (auto written = store_metrics(store, run_id, one.key); !written) return written;
  return {};
}

}  // namespace strata::analysis
