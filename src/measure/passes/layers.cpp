// SPDX-License-Identifier: Apache-2.0
// --deep: every level layer by layer, to name the first that differs.
#include <fmt/format.h>

#include "common/interrupt.hpp"
#include "measure/isolated.hpp"
#include "measure/passes/pass.hpp"

namespace strata::measure {

Result<void> compare_layers(CaseRun& point) {
  if (!point.extras.deep) return {};
  auto opened = STRATA_TRY(proof::Reference::open(point.extras.deep->folder));
  for (auto& participant : point.participants) {
    // A level that could not run at all has nothing to show layer by layer.
    const bool ran =
        participant.active || participant.row.state == State::unequal || participant.row.state == State::mistrusted;
    if (!ran || participant.job.level.harness || interrupted()) continue;
    point.progress.status(fmt::format("comparing {} layer by layer", participant.name()), -1);
    const auto job = STRATA_TRY(point.make_job(participant, *point.extras.deep));
    if (const auto prepared = point.prepare(job); !prepared)
      participant.deep_note = prepared.error().what;
    else
      run_deep(participant, job, opened);
    auto& facts = participant.row.info.deep.emplace();
    if (const auto& deep = participant.deep)
      facts = {.first_difference = deep->first_difference, .reason = deep->reason, .worst_ratio = deep->worst_ratio};
    else
      facts.note = participant.deep_note;
    if (participant.deep && !participant.deep->first_difference.empty()) {
      point.certify(participant);
      if (!participant.active)
        participant.row.reason +=
            fmt::format("; the first layer that differs is {}", participant.deep->first_difference);
      point.progress.note(fmt::format("{}: the first layer that differs is {}", participant.name(),
                                      participant.deep->first_difference));
    }
    STRATA_TRY(point.sink.row(participant.row));
  }
  return {};
}

}  // namespace strata::measure
