// SPDX-License-Identifier: Apache-2.0
#include "measure/cut_case.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/outside.hpp"
#include "measure/load_facts.hpp"

namespace strata::measure {

Result<CutCase> CutCase::open(const Setting& setting, const store::Case& now, store::Store& store) {
  CutCase cut;
  if (!setting.resumed) return cut;
  const auto& cases = setting.resumed->cases;
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const auto& one) { return one.key == now.key; });
  if (found == cases.end()) return cut;
  if (found->network != now.network)
    return fail(fmt::format("{}: the network is not the one that run {} began with", now.id, setting.run_id),
                "compare it in a run of its own");
  cut.trains_ = now.question.recipe && now.question.recipe->training;
  if (cut.trains_) {  // its epochs are kept; only what is said anew goes
    cut.before_ = &*found;
    if (auto done = store.drop_warnings(setting.run_id, now.key); !done) return tl::unexpected(done.error());
    return cut;
  }
  const auto stored = store.restarts(setting.run_id, now.key);
  if (!stored) return tl::unexpected(stored.error());
  if (!setting.options.tuned)
    for (const auto& loads : *stored) cut.loads_.push_back(loads_of(loads));
  if (!cut.loads_.empty()) cut.before_ = &*found;
  if (auto done = store.cut_case(setting.run_id, now.key, cut.restarts()); !done) return tl::unexpected(done.error());
  return cut;
}

bool CutCase::take_up(Player& player) const {
  if (!before_) return false;
  const auto row = std::find_if(before_->rows.begin(), before_->rows.end(),
                                [&](const auto& one) { return one.name() == player.name(); });
  if (row == before_->rows.end()) return false;
  player.row.row_id = row->row_id;
  const bool out = trains_ ? row->state == "unequal" || row->state == "mistrusted" : !row->blocks.empty();
  if (row->judged && row->state != "measured" && out)
    player.drop({state_from(row->state).value_or(State::failed), row->reason, row->hint, row->log_tail});
  return true;
}

const store::Row* CutCase::row_of(const Player& player) const {
  if (!before_) return nullptr;
  const auto row = std::find_if(before_->rows.begin(), before_->rows.end(),
                                [&](const auto& one) { return one.row_id == player.row.row_id; });
  return row == before_->rows.end() ? nullptr : &*row;
}

bool CutCase::take_proof(Player& player) const {
  const auto* row = row_of(player);
  if (!row || !row->judged || row->state != "measured" || !proof::can_be_continued(row->proof)) return false;
  player.proven_before = row->proof;
  player.row.memory = row->memory;
  player.row.settings = row->settings;
  player.row.artefact_bytes = row->artefact_bytes;
  for (const char* name : {"accuracy", "facts", "libraries", "first_ever"})
    if (const Json& fact = outside::field(row->info, name); !fact.is_null()) player.row.info[name] = fact;
  for (const auto& start : row->start_up)
    if (outside::integer_or(start, "restart", 0) == -1) player.row.start_up.push_back(start);
  player.peak_bytes = static_cast<std::uint64_t>(std::max(outside::number_or(row->memory, "peak_private_bytes"),
                                                          outside::number_or(row->memory, "expected_peak_bytes")));
  return true;
}

void CutCase::add_to(std::vector<Player>& players, TurnsPlan& plan) const {
  plan.first = restarts();
  for (const auto& loads : loads_) plan.load_before.insert(plan.load_before.end(), loads.begin(), loads.end());
  for (auto& player : players) {
    const auto* row = player.playing ? row_of(player) : nullptr;
    if (!row) continue;
    for (const auto& block : row->blocks)
      if (block.restart < plan.first) player.row.blocks.push_back(block);
    for (const auto& start : row->start_up) {
      const auto number = outside::integer_or(start, "restart", -1);
      if (number >= 0 && number < plan.first) player.row.start_up.push_back(start);
    }
    for (const auto& sums : outside::field(row->info, "meters")) {
      const auto number = outside::integer_or(sums, "restart", -1);
      if (number >= 0 && number < plan.first) player.row.info["meters"].push_back(sums);
    }
    if (!player.job.level.harness) player.evidence.blocks_checked += static_cast<int>(player.row.blocks.size());
  }
}

}  // namespace strata::measure
