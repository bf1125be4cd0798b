// SPDX-License-Identifier: Apache-2.0
#include "analysis/open_batch.hpp"

#include <algorithm>
#include <map>

#include "analysis/blocks.hpp"
#include "analysis/estimate.hpp"
#include "common/lookup.hpp"
#include "stats/compare.hpp"

namespace strata::analysis {
using lookup::list;
using lookup::number;
namespace {

// A first call at a new size counts as a recompilation from here on: disturbances and new oneDNN primitives stay below
// (docs/measuring.md).
constexpr double kLeastMs = 20, kLeastFactor = 2;

// Of a comparison of one level with itself; the statistics hold a place for each.
constexpr int kMostRestarts = 1000, kMostRounds = 100'000;

struct Size {
  std::vector<double> settled_ms;
  double first_ms = 0, again_ms = 0, worst_ratio = 0;
};

std::map<int, Size> sizes_of(const store::OpenBatchRecord& measured) {
  std::map<int, Size> sizes;
  for (const auto& visit : measured.visits) {
    auto& size = sizes[visit.size];
    (visit.lap == 0 ? size.first_ms : size.again_ms) = static_cast<double>(visit.first_ns) * 1e-6;
    size.worst_ratio = std::max(size.worst_ratio, visit.worst_ratio);
    for (const auto ns : visit.wall_ns) size.settled_ms.push_back(static_cast<double>(ns) * 1e-6);
  }
  return sizes;
}

store::Row row_of(const std::vector<store::Block>& turns) {
  store::Row row;
  row.blocks = turns;
  for (auto& block : row.blocks) {
    block.restart = std::min(block.restart, kMostRestarts);
    block.round = std::min(block.round, kMostRounds);
  }
  return row;
}

std::optional<AgainstFixed> against_fixed(const store::OpenBatchRecord& measured, const stats::CoreBudget& room,
                                          double sigma, double minimum, bool reliable) {
  if (!measured.turns) return std::nullopt;
  const auto fixed = row_of(measured.turns->fixed), open = row_of(measured.turns->open);
  const auto comparison = stats::compare(stats::log_differences(medians({&fixed, &open}, room, 0), 0, 1), sigma);
  const auto direction = reliable ? stats::judge(comparison, minimum).direction : stats::Direction::inconclusive;
  return AgainstFixed{.batch = measured.own, .ratio = {Estimate(comparison.ratio()), verdict_of(direction)}};
}

// What the level itself counted between its warm-up and the last visit.
std::optional<ReportedRecompiles> reported(const std::optional<store::LevelReports>& reports) {
  if (!reports) return std::nullopt;
  const auto before = number(reports->before, "recompiles"), after = number(reports->after, "recompiles");
  if (!before || !after) return std::nullopt;
  ReportedRecompiles counted{.recompiles = *after - *before};
  const auto& all = list(reports->after, "recompile_reasons");
  for (std::size_t i = 0; i < all.size(); ++i)
    if (static_cast<double>(i) >= *before && all[i].is_string()) counted.reasons.push_back(all[i].get<std::string>());
  return counted;
}

// Each size that was visited, and of those that the artefact was not warmed up with how many compiled again.
void add_sizes(OpenBatch& open, const store::OpenBatchRecord& dynamic) {
  int unseen = 0, recompiled = 0;
  double total = 0;
  for (const auto& [batch, size] : sizes_of(dynamic)) {
    const double settled = stats::median(size.settled_ms), extra = size.first_ms - settled;
    const bool seen = open.own == batch;
    const bool again = !seen && extra >= kLeastMs && size.first_ms >= kLeastFactor * std::max(settled, size.again_ms);
    unseen += !seen;
    recompiled += again;
    total += again ? extra : 0;
    open.sizes.push_back({.batch = batch,
                          .seen = seen,
                          .recompiled = again,
                          .first_ms = size.first_ms,
                          .again_ms = size.again_ms,
                          .settled_ms = finite(settled),
                          .recompile_ms = again ? OptionalNumber(extra) : std::nullopt,
                          .envelopes = size.worst_ratio});
  }
  open.unseen = unseen;
  open.recompiled = recompiled;
  open.recompile_ms = total;
}

}  // namespace

std::optional<OpenBatch> open_batch(const store::Row& row, const stats::CoreBudget& room, double sigma, double minimum,
                                    bool reliable) {
  if (!row.info.dynamic) return std::nullopt;
  const auto& dynamic = *row.info.dynamic;
  OpenBatch open{.low = dynamic.low,
                 .high = dynamic.high,
                 .own = dynamic.own,
                 .state = dynamic.state,
                 .reason = dynamic.reason,
                 .hint = dynamic.hint,
                 .prepare_ms = dynamic.prepare_ms.value_or(0) > 0 ? dynamic.prepare_ms : std::nullopt,
                 .against_fixed_note = dynamic.turns_note};
  if (!open.is_measured()) return open;
  add_sizes(open, dynamic);
  open.reported = reported(dynamic.reported);
  open.against_fixed = against_fixed(dynamic, room, sigma, minimum, reliable);
  return open;
}

}  // namespace strata::analysis
