// SPDX-License-Identifier: Apache-2.0
// --eval: the user's score of every level that has numbers. A score that fails leaves them.
#include <fmt/format.h>

#include "common/interrupt.hpp"
#include "measure/passes/pass.hpp"

namespace strata::measure {

Result<void> score_levels(CaseRun& point) {
  for (auto& participant : point.participants) {
    if (!point.extras.evaluation || !participant.active || participant.row.blocks.empty() ||
        participant.job.level.harness || interrupted())
      continue;
    point.progress.status(fmt::format("scoring {}", participant.name()), -1);
    auto score =
        measure::evaluate(participant, *point.extras.evaluation, point.setting.place, point.setting.environment);
    if (interrupted()) break;
    if (!score.is_scored()) point.progress.note(fmt::format("{}: no score: {}", participant.name(), score.reason));
    participant.row.info.eval = std::move(score);
    STRATA_TRY(point.sink.row(participant.row));
  }
  return {};
}

}  // namespace strata::measure
