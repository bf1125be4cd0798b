// SPDX-License-Identifier: Apache-2.0
#include "stats/disturbed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace strata::stats {
namespace {

constexpr std::size_t enough = 8;  // blocks from which a level's own spread means something

// What undisturbed blocks look like.
struct Undisturbed {
  double centre = nan, slow = std::numeric_limits<double>::infinity();  // slower than `slow` is disturbed
};

Undisturbed look_of(const std::vector<double>& medians) {
  if (medians.size() < enough) return {};
  const double centre = median(medians);
  return {centre, std::max(1.10 * centre, centre + 5 * robust_sd(medians))};
}

// Why a block is disturbed by what is known of it alone; "" if it is not. nullopt: its time has to be judged by
// others'.
std::optional<std::string> by_itself(const BlockTiming& block, const CoreBudget& room) {
  const double waited = block.runq_ns / block.wall_ns;
  if (room.threads <= 1 && !std::isnan(waited))
    return waited > 0.01 ? fmt::format("waited {:.1f}% of its time for a core", 100 * waited) : std::string();
  if (crowded(room, block.taken))
    return fmt::format("others had {:.0f}% of the processors, and {} thread{} need{} them", 100 * block.taken,
                       room.threads, room.threads == 1 ? "" : "s", room.threads == 1 ? "s" : "");
  return std::nullopt;
}

}  // namespace

bool crowded(const CoreBudget& room, double taken) {
  if (!(taken > tolerated_load) || room.cores < 1) return false;  // also where it is NaN
  const double cores = room.cores;
  return room.threads + taken * std::max(room.processors, room.cores) > (1 + tolerated_load) * cores;
}

std::vector<std::string> disturbed(std::span<const BlockTiming> blocks, const CoreBudget& room) {
  std::vector<std::string> why(blocks.size());
  std::vector<std::size_t> open;
  std::map<int, std::vector<double>> undisturbed;  // medians of each restart
  std::vector<double> all;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (auto known = by_itself(blocks[i], room)) {
      why[i] = std::move(*known);
      continue;
    }
    open.push_back(i);
    undisturbed[blocks[i].restart].push_back(blocks[i].median_ns);
    all.push_back(blocks[i].median_ns);
  }
  std::map<int, Undisturbed> looks;
  for (const auto& [restart, medians] : undisturbed) looks[restart] = look_of(medians.size() < enough ? all : medians);
  for (const auto i : open) {
    const auto& look = looks[blocks[i].restart];
    if (blocks[i].median_ns > look.slow)
      why[i] = fmt::format("{:.0f}% slower than this level's undisturbed blocks",
                           100 * (blocks[i].median_ns / look.centre - 1));
  }
  return why;
}

}  // namespace strata::stats
