// SPDX-License-Identifier: Apache-2.0
#include "analysis/open_batch.hpp"

#include <algorithm>
#include <map>

#include "analysis/blocks.hpp"
#include "analysis/estimate.hpp"
#include "common/lookup.hpp"
#include "common/outside.hpp"
#include "stats/compare.hpp"

namespace strata::analysis {
using Json = nlohmann::json;
using lookup::at;
using lookup::list;
using lookup::number;
using lookup::text;
using lookup::whole;
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

std::map<int, Size> sizes_of(const Json& measured) {
  std::map<int, Size> sizes;
  for (const auto& visit : list(measured, "visits")) {
    auto& size = sizes[whole(visit, "size", 0)];
    (whole(visit, "lap", 0) == 0 ? size.first_ms : size.again_ms) = number(visit, "first_ns").value_or(0) * 1e-6;
    size.worst_ratio = std::max(size.worst_ratio, number(visit, "worst_ratio").value_or(0));
    for (const auto& ns : list(visit, "wall_ns"))
      if (ns.is_number()) size.settled_ms.push_back(ns.get<double>() * 1e-6);
  }
  return sizes;
}

store::Row row_of(const Json& blocks) {
  store::Row row;
  for (const auto& timing : blocks) {
    store::Block block;
    block.restart = whole(timing, "restart", 0, 0, kMostRestarts);
    block.round = whole(timing, "round", 0, 0, kMostRounds);
    for (const auto& ns : list(timing, "wall_ns"))
      if (const auto wall = outside::as_integer(ns); wall && *wall >= 0) block.wall_ns.push_back(*wall);
    block.taken = number(timing, "taken");
    if (const auto wait = number(timing, "runq_ns")) block.runq_ns = static_cast<std::int64_t>(*wait);
    row.blocks.push_back(std::move(block));
  }
  return row;
}

std::optional<AgainstFixed> against_fixed(const Json& measured, const stats::CoreBudget& room, double sigma,
                                          double minimum, bool reliable) {
  if (!at(measured, "turns").is_object()) return std::nullopt;
  const auto fixed = row_of(list(measured, "turns.fixed")), open = row_of(list(measured, "turns.open"));
  const auto comparison = stats::compare(stats::log_differences(medians({&fixed, &open}, room, 0), 0, 1), sigma);
  const auto direction = reliable ? stats::judge(comparison, minimum).direction : stats::Direction::inconclusive;
  return AgainstFixed{.batch = whole(measured, "own", 0),
                      .ratio = {Estimate(comparison.ratio()), verdict_of(direction)}};
}

// What the level itself counted between its warm-up and the last visit.
std::optional<ReportedRecompiles> reported(const Json& measured) {
  const auto before = number(measured, "reported.before.recompiles"),
             after = number(measured, "reported.after.recompiles");
  if (!before || !after) return std::nullopt;
  ReportedRecompiles counted{.recompiles = *after - *before};
  const auto& all = list(measured, "reported.after.recompile_reasons");
  for (std::size_t i = 0; i < all.size(); ++i)
    if (static_cast<double>(i) >= *before && all[i].is_string()) counted.reasons.push_back(all[i].get<std::string>());
  return counted;
}

// Each size that was visited, and of those that the artefact was not warmed up with how many compiled again.
void add_sizes(OpenBatch& open, const Json& dynamic) {
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
  const Json& dynamic = row.info.dynamic;
  if (!dynamic.is_object()) return std::nullopt;
  const auto prepare_ms = number(dynamic, "prepare_ms");
  OpenBatch open{.low = whole(dynamic, "low", 0),
                 .high = whole(dynamic, "high", 0),
                 .own = whole(dynamic, "own", 0),
                 .state = text(dynamic, "state"),
                 .reason = text(dynamic, "reason"),
                 .hint = text(dynamic, "hint"),
                 .prepare_ms = prepare_ms.value_or(0) > 0 ? prepare_ms : std::nullopt,
                 .against_fixed_note = text(dynamic, "turns_note")};
  if (!open.is_measured()) return open;
  add_sizes(open, dynamic);
  open.reported = reported(dynamic);
  open.against_fixed = against_fixed(dynamic, room, sigma, minimum, reliable);
  return open;
}

}  // namespace strata::analysis
