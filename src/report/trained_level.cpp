// SPDX-License-Identifier: Apache-2.0
#include "report/trained_level.hpp"

namespace strata::report {
namespace {

// A run that was killed has judged no row: what it has epochs of was proven before the first one.
TrainedLevel trained_level(const store::Row& row, std::vector<store::Series> series) {
  const analysis::Learning learning(series);
  if (!row.judged && !series.empty())
    return {.row = &row,
            .learning = learning,
            .state = State::measured,
            .reason = "the run was cut off; ./strata resume goes on with it",
            .series = std::move(series)};
  if (row.state != State::measured)
    return {.row = &row,
            .learning = analysis::Learning({}),
            .state = row.state,
            .reason = row.reason,
            .series = std::move(series)};
  return {.row = &row, .learning = learning, .state = row.state, .reason = "", .series = std::move(series)};
}

// Of a row that stands for those of several shards: of all their repeats.
Result<std::vector<store::Series>> series_of(const store::Row& row, const store::Store& store) {
  auto all = store.series(row.row_id);
  for (const auto other : row.info.rows_of_shards) {
    auto more = store.series(other);
    if (!all || !more) return all ? std::move(more) : std::move(all);
    all->insert(all->end(), more->begin(), more->end());
  }
  return all;
}

}  // namespace

Result<std::vector<TrainedLevel>> trained_levels(const store::Case& run_case, const store::Store& store) {
  std::vector<TrainedLevel> levels;
  for (const auto& row : run_case.rows) {
    auto series = STRATA_TRY(series_of(row, store));
    levels.push_back(trained_level(row, std::move(series)));
  }
  return levels;
}

const TrainedLevel* reference_of(const std::vector<TrainedLevel>& levels, const store::Case& run_case) {
  for (const auto& level : levels)
    if (level.row->name() == run_case.reference_level) return &level;
  return nullptr;
}

analysis::SizesByStep sizes_of(const TrainedLevel& level) {
  return analysis::layer_sizes(level.series, level.row->info.layers);
}

document::Cell spread_cell(const std::optional<analysis::Spread>& spread, document::NumberFormat format,
                           const std::string& why) {
  if (!spread) return document::Absent{why};
  document::Number number{.value = spread->mean, .format = format};
  if (spread->count > 1) {
    number.low = spread->low;
    number.high = spread->high;
  }
  return number;
}

}  // namespace strata::report
