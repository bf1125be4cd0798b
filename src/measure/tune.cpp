// SPDX-License-Identifier: Apache-2.0
#include "measure/tune.hpp"

#include "measure/turns.hpp"

namespace strata::measure {
namespace {

double median_ms(const Player& player) {
  std::vector<double> walls;
  for (const auto& block : player.row.blocks)
    for (const auto ns : block.wall_ns) walls.push_back(static_cast<double>(ns) * 1e-6);
  return stats::median(walls);
}

}  // namespace

Result<Choice> choose_variant(const std::vector<Player>& candidates, const Judge& judge, store::Store& store,
                              double seconds, std::uint64_t seed, const stats::Room& room, const Progress& progress) {
  std::vector<Player> tried = candidates;
  TurnsPlan plan;
  plan.effort = {1, seconds, 0, 0, "tuning"};
  plan.seed = seed;
  plan.room = room;
  plan.trial = true;
  if (tried.size() > 1)
    if (auto ran = take_turns(tried, judge, store, plan, progress); !ran) return tl::unexpected(ran.error());
  std::size_t best = 0;
  double least = 0;
  Json list = Json::array();
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const auto& player = tried[i];
    const bool timed = player.playing && !player.row.blocks.empty();
    const double ms = timed ? median_ms(player) : 0;
    if (timed && (least == 0 || ms < least)) {
      least = ms;
      best = i;
    }
    list.push_back({{"variant", player.row.variant},
                    {"title", player.job.level.default_text},
                    {"state", timed ? "measured" : player.row.state},
                    {"reason", timed ? "" : player.row.reason},
                    {"median_ms", timed ? Json(ms) : Json()}});
  }
  Json record{
      {"seconds", tried.size() > 1 ? seconds : 0}, {"best", candidates[best].row.variant}, {"tried", std::move(list)}};
  return Choice{candidates[best], std::move(record)};
}

}  // namespace strata::measure
