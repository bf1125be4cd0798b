// SPDX-License-Identifier: Apache-2.0
#include "measure/tune.hpp"

#include <algorithm>

#include "measure/turns.hpp"

namespace strata::measure {
namespace {

double median_ms(const Player& player) {
  std::vector<double> walls;
  for (const auto& block : player.row.blocks)
    for (const auto ns : block.wall_ns) walls.push_back(static_cast<double>(ns) * 1e-6);
  return stats::median(walls);
}

// As it was before its trial: proven alone, nothing timed.
Player without_trial(Player player) {
  player.row.blocks.clear();
  player.evidence.forget_blocks();
  Json starts = Json::array();
  for (auto& start : player.row.start_up)
    if (start.value("restart", -1) < 0) starts.push_back(std::move(start));
  player.row.start_up = std::move(starts);
  return player;
}

}  // namespace

Result<Choice> choose_variant(std::vector<Player>& tried, const proof::Reference& reference, store::Store& store, double seconds, std::uint64_t seed, int threads,
                              const Progress& progress) {
  TurnsPlan plan;
  plan.effort = {1, seconds, 0, 0, "tuning"};
  plan.seed = seed;
  plan.threads = threads;
  plan.trial = true;
  if (tried.size() > 1)
    if (auto ran = take_turns(tried, reference, store, plan, progress); !ran) return tl::unexpected(ran.error());
  const Player* best = &tried.front();
  double least = 0;
  Json list = Json::array();
  for (const auto& player : tried) {
    const bool timed = player.playing && !player.row.blocks.empty();
    const double ms = timed ? median_ms(player) : 0;
    if (timed && (least == 0 || ms < least)) {
      least = ms;
      best = &player;
    }
    list.push_back({{"variant", player.row.variant}, {"title", player.job.level.default_text}, {"state", timed ? "measured" : player.row.state}, {"reason", timed ? "" : player.row.reason},
                    {"median_ms", timed ? Json(ms) : Json()}});
  }
  Json record{{"seconds", tried.size() > 1 ? seconds : 0}, {"best", best->row.variant}, {"tried", std::move(list)}};
  return Choice{without_trial(*best), std::move(record)};
}

}  // namespace strata::measure
