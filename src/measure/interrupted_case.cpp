// SPDX-License-Identifier: Apache-2.0
#include "measure/interrupted_case.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/load_facts.hpp"

namespace strata::measure {

Result<InterruptedCase> InterruptedCase::open(const Setting& setting, const store::Case& now, store::Store& store) {
  InterruptedCase interrupted_case;
  if (!setting.resumed) return interrupted_case;
  const auto& cases = setting.resumed->cases;
  const auto it =
      std::find_if(cases.begin(), cases.end(), [&](const auto& run_case) { return run_case.key == now.key; });
  if (it == cases.end()) return interrupted_case;
  if (it->network != now.network)
    return fail(fmt::format("{}: the network is not the one that run {} began with", now.id, setting.run_id),
                "compare it in a run of its own");
  interrupted_case.trains_ = now.question.recipe && now.question.recipe->training;
  if (interrupted_case.trains_) {  // its epochs are kept; only what is said anew goes
    interrupted_case.stored_ = &*it;
    STRATA_TRY(store.drop_warnings(setting.run_id, now.key));
    return interrupted_case;
  }
  const auto stored = STRATA_TRY(store.restarts(setting.run_id, now.key));
  if (!setting.options.tuned) {
    interrupted_case.stored_ = &*it;
    for (const auto& loads : stored) interrupted_case.loads_.push_back(analysis::loads_of(loads));
  }
  STRATA_TRY(store.drop_restarts(setting.run_id, now.key, interrupted_case.restarts()));
  return interrupted_case;
}

const store::Row* InterruptedCase::row_of(const store::Case* stored, const Participant& participant) {
  if (!stored) return nullptr;
  const auto row = std::find_if(stored->rows.begin(), stored->rows.end(),
                                [&](const auto& each) { return each.name() == participant.name(); });
  return row == stored->rows.end() ? nullptr : &*row;
}

bool InterruptedCase::restore_row(Participant& participant) const {
  const auto* row = row_of(before(), participant);
  if (!row) return false;
  participant.row.row_id = row->row_id;
  const bool out = trains_ ? row->state == State::unequal || row->state == State::mistrusted : !row->blocks.empty();
  if (row->judged && row->state != State::measured && out)
    participant.drop({.state = row->state, .what = row->reason, .hint = row->hint, .log_tail = row->log_tail});
  return true;
}

bool InterruptedCase::restore_proof(Participant& participant) const {
  const auto* row = row_of(stored_, participant);
  if (!row || row->state == State::unequal || row->state == State::mistrusted || !row->proof ||
      !proof::can_be_continued(*row->proof))
    return false;
  participant.proven_before = row->proof;
  participant.row.memory = row->memory;
  participant.row.settings = row->settings;
  participant.row.artefact_bytes = row->artefact_bytes;
  participant.row.info.accuracy = row->info.accuracy;
  participant.row.info.facts = row->info.facts;
  participant.row.info.libraries = row->info.libraries;
  participant.row.info.cold_start = row->info.cold_start;
  for (const auto& start : row->start_up)
    if (start.restart == -1) participant.row.start_up.push_back(start);
  if (const auto& memory = row->memory)
    participant.peak_bytes =
        static_cast<std::uint64_t>(std::max(memory->peak_private_bytes, memory->expected_peak_bytes).value_or(0));
  return true;
}

void InterruptedCase::add_to(std::vector<Participant>& participants, InterleavePlan& plan) const {
  plan.first = restarts();
  for (const auto& loads : loads_) plan.load_before.insert(plan.load_before.end(), loads.begin(), loads.end());
  for (auto& participant : participants) {
    const auto* row = participant.active ? row_of(before(), participant) : nullptr;
    if (!row) continue;
    for (const auto& block : row->blocks)
      if (block.restart < plan.first) participant.row.blocks.push_back(block);
    for (const auto& start : row->start_up)
      if (start.restart >= 0 && start.restart < plan.first) participant.row.start_up.push_back(start);
    for (const auto& sums : row->info.meters)
      if (sums.restart < plan.first) participant.row.info.meters.push_back(sums);
    if (!participant.job.level.harness)
      participant.evidence.blocks_checked += static_cast<int>(participant.row.blocks.size());
  }
}

}  // namespace strata::measure
