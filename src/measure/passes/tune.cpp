// SPDX-License-Identifier: Apache-2.0
// Gives every level the same measured seconds to find its best variant, which is then measured afresh beside the
// default: the least of several noisy times is too low. What was tried stays in the default row's `tuning`.
#include "measure/tune.hpp"

#include <fmt/format.h>

#include "common/interrupt.hpp"
#include "measure/passes/pass.hpp"
#include "plan/jobs.hpp"

namespace strata::measure {
namespace {

// The level itself and its variants that are for this case, each proven alone.
Result<std::vector<Participant>> candidates_of(CaseRun& point, const Participant& participant,
                                               std::vector<std::string>& elsewhere) {
  std::vector<Participant> tried{participant};
  for (const auto& variant : participant.job.level.variants) {
    const auto level = level::as_variant(participant.job.level, variant);
    const auto why = point.cannot_run(level);
    if (why && why->state == State::unsupported) {  // of another mode or device
      elsewhere.push_back(fmt::format("{}: {}", variant.name, why->what));
      continue;
    }
    auto candidate = STRATA_TRY(point.make_participant(level));
    point.prove(candidate);
    if (!candidate.active && !why)
      point.progress.note(
          fmt::format("{}: {}: {}", candidate.name(), to_string(candidate.row.state), candidate.row.reason));
    tried.push_back(std::move(candidate));
  }
  return tried;
}

Result<void> take_best(CaseRun& point, Participant best) {
  best.row.info.tuned = true;
  STRATA_TRY(point.add_row(best));
  STRATA_TRY(point.sink.row(best.row));
  point.participants.push_back(std::move(best));
  return {};
}

Result<void> tune_one(CaseRun& point, std::size_t index) {
  std::vector<std::string> elsewhere;  // variants that are not for this case
  const auto tried = STRATA_TRY(candidates_of(point, point.participants[index], elsewhere));
  if (tried.size() == 1) {
    point.participants[index].row.info.tuning = nothing_to_tune(elsewhere);
    return point.sink.row(point.participants[index].row);
  }
  point.progress.status(fmt::format("tuning {}", point.participants[index].name()), -1);
  // Half the restarts: enough that one lucky process does not choose, and what is chosen is measured afresh.
  InterleavePlan trial;
  trial.effort = {.restarts = std::clamp(point.setting.effort.restarts / 2, 1, 4),
                  .budget_s = point.setting.effort.tune_s,
                  .preset = "tuning"};
  trial.seed = point.setting.order_seed + index;
  trial.room = point.room();
  trial.process_sigma = point.record.trust.process_sigma.value();
  auto choice = STRATA_TRY(choose_variant(tried, point.references.judge(), trial, point.progress));
  point.participants[index].row.info.tuning = std::move(choice.record);
  const auto named =
      std::find_if(point.participants.begin(), point.participants.end(),
                   [&](const Participant& participant) { return participant.name() == choice.best.name(); });
  if (named != point.participants.end()) {
    named->row.info.tuned = true;
    STRATA_TRY(point.sink.row(named->row));
  } else if (auto taken = take_best(point, std::move(choice.best)); !taken) {
    return taken;
  }
  return point.sink.row(point.participants[index].row);
}

}  // namespace

Result<void> tune_levels(CaseRun& point) {
  const std::size_t levels = point.participants.size();
  for (std::size_t i = 0; i < levels && !interrupted(); ++i) {
    if (!point.participants[i].active || point.participants[i].job.level.harness) continue;
    STRATA_TRY(tune_one(point, i));
  }
  return {};
}

}  // namespace strata::measure
