// SPDX-License-Identifier: Apache-2.0
#include "analysis/find_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/case_statistics.hpp"
#include "analysis/meters.hpp"
#include "stats/sample.hpp"

namespace strata::analysis {
namespace {

constexpr double kQuantile = 0.99;

// A level at one combination: its rows by batch.
struct LevelAtBatches {
  std::map<std::int64_t, std::vector<double>> log_times;  // of a sample, by restart
  BatchCurve curve;
  std::vector<std::int64_t> unreliable;
  double sigma = 0;
};

std::string words_of(const Grid& grid, const GridCell& cell) {
  std::string words;
  for (std::size_t i = 0; i < grid.axes.size(); ++i)
    if (grid.axes[i].name != "batch")
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", grid.axes[i].name, cell.at[i]);
  return words;
}

// Whether a batch may be as good as within the tolerance of the fastest.
bool may_be_alike(const LevelAtBatches& level_at, std::int64_t fastest, std::int64_t batch) {
  if (batch == fastest) return true;
  const auto comparison =
      stats::compare_unpaired(level_at.log_times.at(fastest), level_at.log_times.at(batch), level_at.sigma);
  return !(comparison.log_ratio.high < std::log1p(-kBatchTolerance));
}

BatchAnswer answer_of(const std::string& level, const std::string& at, const LevelAtBatches& level_at,
                      const BatchRule& rule) {
  BatchAnswer answer{.level = level,
                     .at = at,
                     .curve = level_at.curve,
                     .batch = best_batch(rule, level_at.curve),
                     .unreliable = level_at.unreliable};
  double best = 0;
  for (const auto& [batch, seen] : level_at.curve)
    if (is_allowed(rule, seen) && seen.samples_per_s > best) {
      best = seen.samples_per_s;
      answer.fastest = batch;
    }
  for (const auto& [batch, seen] : level_at.curve)
    if (is_allowed(rule, seen) && may_be_alike(level_at, answer.fastest, batch)) answer.alike.push_back(batch);
  return answer;
}

}  // namespace

BatchObservation batch_observation(const store::Row& row, const core::Case& question, const stats::CoreBudget& room) {
  BatchObservation seen;
  seen.runs = row.state == State::measured && !row.blocks.empty();
  if (!seen.runs) return seen;
  std::vector<double> walls;
  for (const auto& block : row.blocks) walls.insert(walls.end(), block.wall_ns.begin(), block.wall_ns.end());
  const auto logs = restart_log_times(row, room);
  const double ns = logs.empty()
                        ? stats::median(walls)
                        : std::exp(std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size()));
  seen.samples_per_s = static_cast<double>(question.batch) / ns * 1e9;
  seen.utilisation = cpu_utilisation(row, question.threads).value_or(0);
  std::sort(walls.begin(), walls.end());
  const auto rank = static_cast<std::size_t>(std::ceil(kQuantile * static_cast<double>(walls.size())));
  seen.p99_ms = walls[std::min(walls.size(), std::max<std::size_t>(1, rank)) - 1] * 1e-6;
  return seen;
}

std::vector<BatchAnswer> find_batches(const store::Run& run, const Grid& grid, const BatchRule& rule) {
  std::vector<std::pair<std::string, std::string>> order;  // combination and level, as they come
  std::map<std::pair<std::string, std::string>, LevelAtBatches> all;
  for (const auto& cell : grid.cells) {
    const CaseStatistics statistics(run, *cell.run_case);
    const auto at = words_of(grid, cell);
    const auto batch = cell.run_case->question.batch;
    for (const auto& row : cell.run_case->rows) {
      if (row.info.harness) continue;
      const std::pair key(at, row.name());
      if (!all.contains(key)) order.push_back(key);
      auto& level_at = all[key];
      level_at.sigma = statistics.sigma();
      if (!cell.reliable && rule.kind != BatchRule::Kind::memory) {
        level_at.unreliable.push_back(batch);
        continue;
      }
      level_at.curve[batch] = batch_observation(row, cell.run_case->question, statistics.room());
      auto logs = restart_log_times(row, statistics.room());
      for (auto& value : logs) value -= std::log(static_cast<double>(batch));
      level_at.log_times[batch] = std::move(logs);
    }
  }
  std::vector<BatchAnswer> answers;
  for (const auto& key : order) {
    const auto& level_at = all.at(key);
    const bool runs = std::any_of(level_at.curve.begin(), level_at.curve.end(),
                                  [](const auto& element) { return element.second.runs; });
    if (runs || !level_at.unreliable.empty()) answers.push_back(answer_of(key.second, key.first, level_at, rule));
  }
  return answers;
}

}  // namespace strata::analysis
