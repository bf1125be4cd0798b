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

class Tune : public Pass {
 public:
  std::vector<std::string> name(const Setting& /*setting*/) const override { return {"tune"}; }
  bool applies(const Setting& setting, const core::Case& /*question*/) const override { return setting.options.tuned; }
  Result<void> run(CaseRun& point) const override;

 private:
  Result<std::vector<Player>> candidates(CaseRun& point, const Player& player,
                                         std::vector<std::string>& elsewhere) const;
  Result<void> tune(CaseRun& point, std::size_t index) const;
  Result<void> take(CaseRun& point, Player best) const;
};

// The level itself and its variants that are for this case, each proven alone.
Result<std::vector<Player>> Tune::candidates(CaseRun& point, const Player& player,
                                             std::vector<std::string>& elsewhere) const {
  std::vector<Player> tried{player};
  for (const auto& variant : player.job.level.variants) {
    const auto level = level::as_variant(player.job.level, variant);
    const auto why = point.cannot_run(level);
    if (why && why->state == State::unsupported) {  // of another mode or device
      elsewhere.push_back(fmt::format("{}: {}", variant.name, why->what));
      continue;
    }
    auto candidate = point.make_player(level);
    if (!candidate) return tl::unexpected(candidate.error());
    point.prove(*candidate);
    if (!candidate->playing && !why)
      point.progress.note(fmt::format("{}: {}: {}", candidate->name(), candidate->row.state, candidate->row.reason));
    tried.push_back(std::move(*candidate));
  }
  return tried;
}

Result<void> Tune::take(CaseRun& point, Player best) const {
  best.row.info["tuned"] = true;
  if (auto added = point.add_row(best); !added) return added;
  if (auto written = point.sink.row(best.row); !written) return written;
  point.players.push_back(std::move(best));
  return {};
}

Result<void> Tune::tune(CaseRun& point, std::size_t index) const {
  std::vector<std::string> elsewhere;  // variants that are not for this case
  const auto tried = candidates(point, point.players[index], elsewhere);
  if (!tried) return tl::unexpected(tried.error());
  if (tried->size() == 1) {
    point.players[index].row.info["tuning"] = nothing_to_tune(elsewhere);
    return point.sink.row(point.players[index].row);
  }
  point.progress.status(fmt::format("tuning {}", point.players[index].name()), -1);
  // Half the restarts: enough that one lucky process does not choose, and what is chosen is measured afresh.
  TurnsPlan trial;
  trial.effort = {.restarts = std::clamp(point.setting.effort.restarts / 2, 1, 4),
                  .budget_s = point.setting.effort.tune_s,
                  .preset = "tuning"};
  trial.seed = point.setting.order_seed + index;
  trial.room = point.room();
  trial.process_sigma = point.record.trust["process_sigma"];
  auto choice = choose_variant(*tried, point.references.judge(), trial, point.progress);
  if (!choice) return tl::unexpected(choice.error());
  point.players[index].row.info["tuning"] = std::move(choice->record);
  const auto named = std::find_if(point.players.begin(), point.players.end(),
                                  [&](const Player& player) { return player.name() == choice->best.name(); });
  if (named != point.players.end()) {
    named->row.info["tuned"] = true;
    if (auto written = point.sink.row(named->row); !written) return written;
  } else if (auto taken = take(point, std::move(choice->best)); !taken) {
    return taken;
  }
  return point.sink.row(point.players[index].row);
}

Result<void> Tune::run(CaseRun& point) const {
  const std::size_t levels = point.players.size();
  for (std::size_t i = 0; i < levels && !interrupted(); ++i) {
    if (!point.players[i].playing || point.players[i].job.level.harness) continue;
    if (auto done = tune(point, i); !done) return done;
  }
  return {};
}

}  // namespace

std::unique_ptr<Pass> tune_pass() {
  return std::make_unique<Tune>();
}

}  // namespace strata::measure
