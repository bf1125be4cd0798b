// SPDX-License-Identifier: Apache-2.0
// The measurement itself: all levels that were proven, interleaved (interleave.hpp).
#include "measure/interleave.hpp"

#include <fmt/format.h>

#include "analysis/load_facts.hpp"
#include "analysis/warnings.hpp"
#include "measure/measuring_mark.hpp"
#include "measure/passes/pass.hpp"
#include "probe/machine.hpp"
#include "probe/memory.hpp"

namespace strata::measure {
namespace {

bool fits_together(const CaseRun& point, std::uint64_t& needed, std::uint64_t& available) {
  available = probe::memory().available_bytes;
  needed = 0;
  for (const auto& participant : point.participants)
    if (participant.active) needed += participant.peak_bytes * (point.setting.options.aa ? 2 : 1);
  return static_cast<double>(needed) < 0.85 * static_cast<double>(available);
}

// A reference that dropped out leaves the others to be compared with the most abstract level that is left; the report
// says so.
std::size_t choose_reference(CaseRun& point) {
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < point.participants.size(); ++i)
    if (point.participants[i].name() == point.record.reference_level) chosen = i;
  if (point.participants.empty() || point.participants[chosen].active) return chosen;
  for (std::size_t i = point.participants.size(); i-- > 0;)
    if (point.participants[i].active && !point.participants[i].job.level.harness) chosen = i;
  if (!point.participants[chosen].active) return chosen;
  if (auto& wanted = point.record.trust.reference_wanted; wanted.empty()) wanted = point.record.reference_level;
  point.record.reference_level = point.participants[chosen].name();
  return chosen;
}

// What others use now, before the levels' own work hides it.
Result<analysis::LoadFacts> look_at_others(CaseRun& point, const MeasuringMark& mark) {
  analysis::LoadFacts load;
  load.begin = probe::other_load(std::chrono::milliseconds(300));
  load.other_run = mark.other();
  if (load.busy())
    point.progress.note(fmt::format("warning: other programs use {:.0f}% of this machine{}", *load.begin * 100,
                                    load.other_run ? "; " + analysis::warnings::another_run(*load.other_run) : ""));
  point.record.trust.load = load;
  STRATA_TRY(point.sink.of_case(point.record));
  return load;
}

}  // namespace

Result<void> measure_levels(CaseRun& point) {
  InterleavePlan plan{.effort = point.setting.effort,
                      .seed = point.setting.order_seed,
                      .room = point.room(),
                      .twice = point.setting.options.aa,
                      .process_sigma = point.record.trust.process_sigma.value(),
                      .trust = &point.record.trust,
                      .reference = choose_reference(point),
                      .warm = point.extras.warm,
                      .sink = &point.sink};
  std::uint64_t needed = 0, available = 0;
  plan.together = fits_together(point, needed, available);
  point.record.trust.together = plan.together;
  if (!plan.together) STRATA_TRY(point.warn_once(analysis::warnings::not_together(needed, available)));
  const MeasuringMark mark(store::Store::default_path().parent_path() / "measuring");
  auto load = STRATA_TRY(look_at_others(point, mark));
  if (point.restarts == 0) {
    point.interrupted_case.add_to(point.participants, plan);
  } else {
    plan.first = point.restarts;
    plan.load_before = point.loads;
  }
  plan.finished = [&](int number, const std::vector<probe::Load>& loads) -> Result<void> {
    for (auto& participant : point.participants) STRATA_TRY(point.sink.row(participant.row));
    return point.sink.restart(number, analysis::to_json(loads));
  };
  auto done = STRATA_TRY(measure::run_interleaved(point.participants, point.references.judge(), plan, point.progress));
  point.restarts = done.restarts;
  point.loads = done.load;
  choose_reference(point);  // which may have failed meanwhile
  analysis::add_restarts(load, done.load);
  point.record.trust.load = load;
  point.record.trust.restarts = done.restarts;
  if (load.busy()) STRATA_TRY(point.warn_once(analysis::warnings::busy(point.record.id, load)));
  for (const auto& why : done.too_busy) {
    auto warning = analysis::warnings::restarts_part(point.record.id, why);
    for (const auto& participant : point.participants)
      if (why.starts_with(participant.name() + ": ")) warning.row_id = participant.row.row_id;
    STRATA_TRY(point.warn_once(std::move(warning), true));
  }
  return point.sink.of_case(point.record);
}

}  // namespace strata::measure
