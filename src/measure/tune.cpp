// SPDX-License-Identifier: Apache-2.0
#include "measure/tune.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/blocks.hpp"

namespace strata::measure {
namespace {

double median_ms(const Participant& participant) {
  std::vector<double> walls;
  for (const auto& block : participant.row.blocks)
    for (const auto ns : block.wall_ns) walls.push_back(static_cast<double>(ns) * 1e-6);
  return stats::median(walls);
}

bool is_timed(const Participant& participant) {
  return participant.active && !participant.row.blocks.empty();
}

}  // namespace

store::Tuning nothing_to_tune(const std::vector<std::string>& elsewhere) {
  return {.seconds = 0,
          .restarts = 0,
          .best = "default",
          .note = elsewhere.empty() ? std::string("no variants")
                                    : fmt::format("no variant for this case ({})", fmt::join(elsewhere, "; "))};
}

Result<Choice> choose_variant(const std::vector<Participant>& candidates, const ProofReferences& judge,
                              const InterleavePlan& plan, const Progress& progress) {
  std::vector<Participant> tried = candidates;
  const bool compared =
      std::count_if(tried.begin(), tried.end(), [](const auto& participant) { return participant.active; }) > 1;
  if (compared) STRATA_TRY(run_interleaved(tried, judge, plan, progress));
  std::vector<const store::Row*> rows;
  for (const auto& participant : tried) rows.push_back(&participant.row);
  const auto blocks = analysis::medians(rows, plan.room, 0);
  std::size_t best = 0;
  std::optional<std::size_t> reference;
  double highest = analysis::kMinimumEffect;  // logarithm of times as fast as the reference; less is no gain
  store::Tuning record{.seconds = compared ? plan.effort.budget_s : 0, .restarts = compared ? plan.effort.restarts : 0};
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const auto& participant = tried[i];
    std::optional<stats::JudgedRatio> ratio;
    if (is_timed(participant) && !reference) {
      reference = best = i;
    } else if (is_timed(participant)) {
      const auto comparison = stats::compare(stats::log_differences(blocks, *reference, i), plan.process_sigma);
      double gain = comparison.log_ratio.value;
      if (std::isnan(gain))
        gain = std::log(median_ms(tried[*reference]) / median_ms(participant));  // all was disturbed
      if (gain > highest) {
        highest = gain;
        best = i;
      }
      ratio = {stats::Estimate(comparison.ratio()),
               stats::verdict_of(stats::judge(comparison, analysis::kMinimumEffect).direction)};
    }
    const bool alone = !compared && participant.active;
    const bool timed = is_timed(participant);
    record.tried.push_back({.variant = participant.row.variant,
                            .title = participant.job.level.default_text,
                            .state = timed   ? "measured"
                                     : alone ? "skipped"
                                             : std::string(to_string(participant.row.state)),
                            .reason = timed   ? ""
                                      : alone ? "there is nothing to compare it with"
                                              : participant.row.reason,
                            .median_ms = timed ? std::optional(median_ms(participant)) : std::nullopt,
                            .ratio = ratio});
  }
  record.best = candidates[best].row.variant;
  return Choice{candidates[best], std::move(record)};
}

}  // namespace strata::measure
