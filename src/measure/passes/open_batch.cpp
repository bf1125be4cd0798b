// SPDX-License-Identifier: Apache-2.0
// --dynamic: one artefact over several batch sizes, level by level; what came of it stays in the row's info.
#include <fmt/format.h>

#include "common/interrupt.hpp"
#include "measure/passes/pass.hpp"

namespace strata::measure {

Result<void> visit_batch_sizes(CaseRun& point) {
  if (!point.open_batch) return {};
  InterleavePlan turns;
  turns.effort = {.restarts = std::min(point.setting.effort.restarts, 4),
                  .budget_s = std::min(point.setting.effort.tune_s, point.setting.effort.budget_s),
                  .preset = "dynamic"};
  turns.seed = point.setting.order_seed;
  turns.room = point.room();
  for (auto& participant : point.participants) {
    if (interrupted()) break;
    if (!participant.active || participant.job.level.harness) continue;
    store::OpenBatchRecord result;
    if (!participant.job.level.dynamic) {
      result = {.state = "unsupported", .reason = "level.json does not declare that it serves several batch sizes"};
    } else if (auto job = point.make_job(participant, *point.bundle.dynamic); !job) {
      result = {.state = "failed", .reason = job.error().what, .hint = job.error().hint};
    } else {
      job->launch.log_path += ".dynamic";
      result = STRATA_TRY(
          point.open_batch->run(participant, *job, point.prepare_command(job->level), turns, point.progress));
    }
    if (result.state != "measured")
      point.progress.note(
          fmt::format("{} with an open batch: {}: {}", participant.name(), result.state, result.reason));
    participant.row.info.dynamic = std::move(result);
    STRATA_TRY(point.sink.row(participant.row));
  }
  return {};
}

}  // namespace strata::measure
