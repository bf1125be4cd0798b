// SPDX-License-Identifier: Apache-2.0
#include "analysis/judge_stored.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/limit.hpp"
#include "common/outside.hpp"
#include "common/state.hpp"
#include "proof/certificate.hpp"
#include "stats/sample.hpp"

namespace strata::analysis {
namespace {

void judge_as(store::Row& row, State state, std::string reason) {
  row.state = state;
  row.reason = std::move(reason);
}

// Faster than the machine can compute; what a run looks at only in its end. Empty: it is not, or nobody knows.
std::string why_implausible(const store::Case& run_case, const store::Row& row) {
  if (!why_no_limit(run_case.bundle, run_case.limits).empty()) return {};
  const double limit_ms = outside::number_or(run_case.bundle, "flops") / run_case.limits->gflops * 1e-6;
  std::vector<double> walls;
  for (const auto& block : row.blocks) walls.insert(walls.end(), block.wall_ns.begin(), block.wall_ns.end());
  const double iteration_ms = stats::median(walls) * 1e-6;
  if (!(iteration_ms < limit_ms / proof::implausible)) return {};
  return fmt::format(
      "an iteration took {:.3g} ms where this machine's measured peak needs {:.3g} ms for its "
      "arithmetic: it was not done (a memo?)",
      iteration_ms, limit_ms);
}

// The certificate was written before the turns; it says what is missing of it.
void note_missing_end(store::Proof& proof) {
  proof.lines.push_back(
      {.check = "the end of the run",
       .how = "observed",
       .result = "not_checked",
       .detail = "the run was interrupted before what is proven at its end; each stored block was checked"});
}

void judge_row(const store::Case& run_case, store::Row& row) {
  const auto wrong = std::find_if(row.blocks.begin(), row.blocks.end(), [](const auto& b) { return !b.check.empty(); });
  const bool harness = row.info.harness;
  if (wrong != row.blocks.end()) return judge_as(row, State::unequal, wrong->check);
  if (row.blocks.empty()) return;  // its reason is stored with it
  if (!harness && !(row.proof && row.proof->is_equal()))
    return judge_as(row, State::failed, "the run ended before equal work was proven");
  if (const auto why = harness ? std::string() : why_implausible(run_case, row); !why.empty())
    return judge_as(row, State::mistrusted, why);
  judge_as(row, State::measured, "");
  if (!harness) note_missing_end(*row.proof);
}

}  // namespace

void judge_stored(store::Run& run) {
  for (auto& run_case : run.cases)
    for (auto& row : run_case.rows)
      if (!row.judged) {
        judge_row(run_case, row);
        row.judged = true;
      }
}

}  // namespace strata::analysis
