// SPDX-License-Identifier: Apache-2.0
// --deep: every level layer by layer, to name the first that differs.
#include <fmt/format.h>

#include "common/interrupt.hpp"
#include "measure/passes/pass.hpp"
#include "measure/solo.hpp"

namespace strata::measure {
namespace {

class Layers : public Pass {
 public:
  std::vector<std::string> name(const Setting& /*setting*/) const override { return {"compare layers"}; }
  bool applies(const Setting& setting, const core::Case& question) const override {
    return setting.options.deep && question.mode == core::Mode::infer;
  }
  Result<void> run(CaseRun& point) const override;
};

Result<void> Layers::run(CaseRun& point) const {
  if (!point.besides.deep) return {};
  auto opened = proof::Reference::open(point.besides.deep->folder);
  if (!opened) return tl::unexpected(opened.error());
  for (auto& player : point.players) {
    // A level that could not run at all has nothing to show layer by layer.
    const bool ran = player.playing || player.row.state == "unequal" || player.row.state == "mistrusted";
    if (!ran || player.job.level.harness || interrupted()) continue;
    point.progress.status(fmt::format("comparing {} layer by layer", player.name()), -1);
    const auto job = point.make_job(player, *point.besides.deep);
    if (!job) return tl::unexpected(job.error());
    if (const auto prepared = point.prepare(*job); !prepared)
      player.deep_note = prepared.error().what;
    else
      run_deep(player, *job, *opened);
    player.row.info["deep"] = player.deep ? Json{{"first_difference", player.deep->first_difference},
                                                 {"worst_ratio", player.deep->worst_ratio},
                                                 {"reason", player.deep->reason}}
                                          : Json{{"note", player.deep_note}};
    if (player.deep && !player.deep->first_difference.empty()) {
      point.certify(player);
      if (!player.playing)
        player.row.reason += fmt::format("; the first layer that differs is {}", player.deep->first_difference);
      point.progress.note(
          fmt::format("{}: the first layer that differs is {}", player.name(), player.deep->first_difference));
    }
    if (auto written = point.sink.row(player.row); !written) return written;
  }
  return {};
}

}  // namespace

std::unique_ptr<Pass> layers_pass() {
  return std::make_unique<Layers>();
}

}  // namespace strata::measure
