// SPDX-License-Identifier: Apache-2.0
#include "analysis/blocks.hpp"

#include <algorithm>
#include <map>

#include "common/outside.hpp"

namespace strata::analysis {
namespace {

double median_ns(const std::vector<std::int64_t>& values) {
  const std::vector<double> copy(values.begin(), values.end());
  return stats::median(copy);
}

}  // namespace

stats::CoreBudget core_budget_of(const core::Case& question, const store::Json& machine) {
  stats::CoreBudget room{question.threads, 0, 0};
  if (question.device != core::Device::cpu) return room;  // the GPU does the work
  const auto number = [&](const char* name) {
    return static_cast<int>(std::clamp<std::int64_t>(outside::integer_or(machine, name), 0, 1'000'000));
  };
  room.cores = number("physical_cores") > 0 ? number("physical_cores") : number("cores");
  room.processors = std::max(room.cores, number("logical_processors"));
  return room;
}

std::vector<std::string> disturbances(const store::Row& row, const stats::CoreBudget& room) {
  std::vector<std::string> why(row.blocks.size());
  std::map<int, std::vector<std::size_t>> instances;
  for (std::size_t i = 0; i < row.blocks.size(); ++i) instances[row.blocks[i].instance].push_back(i);
  for (const auto& [instance, members] : instances) {
    std::vector<stats::BlockTiming> timings;
    for (const auto i : members) {
      const auto& block = row.blocks[i];
      double wall = 0;
      for (const auto ns : block.wall_ns) wall += static_cast<double>(ns);
      timings.push_back({.median_ns = median_ns(block.wall_ns),
                         .wall_ns = wall,
                         .runq_ns = block.runq_ns ? static_cast<double>(*block.runq_ns) : stats::nan,
                         .taken = block.taken.value_or(stats::nan),
                         .restart = block.restart});
    }
    const auto reasons = stats::disturbed(timings, room);
    for (std::size_t i = 0; i < members.size(); ++i) why[members[i]] = reasons[i];
  }
  return why;
}

stats::Blocks medians(const std::vector<const store::Row*>& rows, const stats::CoreBudget& room, int instance) {
  int restarts = 0;
  std::map<int, int> rounds;
  for (const auto* row : rows)
    for (const auto& block : row->blocks) {
      restarts = std::max(restarts, block.restart + 1);
      rounds[block.restart] = std::max(rounds[block.restart], block.round + 1);
    }
  stats::Blocks blocks(static_cast<std::size_t>(restarts));
  for (int r = 0; r < restarts; ++r)
    blocks[static_cast<std::size_t>(r)].assign(static_cast<std::size_t>(rounds[r]),
                                               std::vector<double>(rows.size(), stats::nan));
  for (std::size_t level = 0; level < rows.size(); ++level) {
    const auto why = disturbances(*rows[level], room);
    for (std::size_t i = 0; i < why.size(); ++i) {
      const auto& block = rows[level]->blocks[i];
      if (block.instance != instance || !why[i].empty()) continue;
      blocks[static_cast<std::size_t>(block.restart)][static_cast<std::size_t>(block.round)][level] =
          median_ns(block.wall_ns);
    }
  }
  return blocks;
}

stats::Blocks twins(const store::Row& row, const stats::CoreBudget& room) {
  const auto first = medians({&row}, room, 0), second = medians({&row}, room, 1);
  stats::Blocks both(first.size());
  for (std::size_t r = 0; r < first.size(); ++r)
    for (std::size_t k = 0; k < first[r].size(); ++k) both[r].push_back({first[r][k][0], second[r][k][0]});
  return both;
}

}  // namespace strata::analysis
