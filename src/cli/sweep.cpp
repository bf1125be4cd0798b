// SPDX-License-Identifier: Apache-2.0
// `strata sweep MODEL --batch ... --size ...`: one network over a grid of cases, corners first, within a budget; who
// may be the fastest where.
#include "cli/console.hpp"
#include "cli/run_verbs.hpp"
#include "report/run_documents.hpp"

namespace strata::cli {

Result<int> run_sweep(const requests::SweepRequest& request, RunArguments& a) {
  std::optional<engine::OwnShard> own;
  if (const auto code = STRATA_TRY(split_run(request, a, own))) return *code;
  const auto path = store::Store::path_of(a.store);
  const auto print = [&](const engine::Prepared& ready) {
    return print_plan(ready, a, true, [&](auto& events) { return engine::plan_sweep(ready, request, path, &events); });
  };
  return run_as(request, a, engine::sweep(request, a, own),
                {.print_plan = print, .show = [&](auto& store, const auto& setting) {
                   return show_document(a, store, setting, report::sweep_document);
                 }});
}

}  // namespace strata::cli
