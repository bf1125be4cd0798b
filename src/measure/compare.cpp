// SPDX-License-Identifier: Apache-2.0
#include "measure/compare.hpp"

#include <algorithm>
#include <utility>

#include "common/interrupt.hpp"
#include "measure/passes/pass.hpp"

namespace strata::measure {

void add_outcome(Outcome& outcome, const store::Row& row, const std::vector<std::string>& named_levels) {
  const bool absent = row.state == State::unavailable || row.state == State::unsupported;
  if (absent && std::find(named_levels.begin(), named_levels.end(), row.level_and_variant()) != named_levels.end())
    outcome.missing = true;
  if (!absent && row.state != State::measured) outcome.failed = true;
  if (row.info.eval && !row.info.eval->is_scored()) outcome.failed = true;
  const auto served = row.info.dynamic ? row.info.dynamic->state : "measured";
  if (served != "measured" && served != "unsupported" && served != "unavailable") outcome.failed = true;
}

Result<std::unique_ptr<VisitedCase>> VisitedCase::open(const Setting& setting, const plan::Bundle& bundle,
                                                       const CaseExtras& extras,
                                                       const std::vector<level::Level>& levels, MachineFacts& facts,
                                                       store::Store& store, const Progress& progress) {
  auto point = std::make_unique<CaseRun>(setting, bundle, extras, facts, store, progress);
  STRATA_TRY(point->begin(levels, bundle.question));
  return std::unique_ptr<VisitedCase>(new VisitedCase(std::move(point)));
}

VisitedCase::VisitedCase(std::unique_ptr<CaseRun> point) : point_(std::move(point)) {}
VisitedCase::~VisitedCase() = default;

const std::vector<Participant>& VisitedCase::participants() const {
  return point_->participants;
}

Result<Outcome> VisitedCase::visit() {
  const bool first = !std::exchange(visited_, true);
  for (const auto& pass : passes()) {
    if (interrupted()) break;
    if (!first && !pass.in_every_visit) continue;
    if (!pass.applies(point_->setting, point_->bundle.question)) continue;
    STRATA_TRY(pass.run(*point_));
  }
  return point_->finish();
}

Result<Outcome> compare_case(const Setting& setting, const plan::Bundle& bundle, const CaseExtras& extras,
                             const std::vector<level::Level>& levels, MachineFacts& facts, store::Store& store,
                             const Progress& progress) {
  auto point = STRATA_TRY(VisitedCase::open(setting, bundle, extras, levels, facts, store, progress));
  return point->visit();
}

}  // namespace strata::measure
