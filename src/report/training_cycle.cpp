// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "analysis/crossing.hpp"
#include "analysis/row_numbers.hpp"
#include "report/training_sections.hpp"

namespace strata::report {
namespace {

using document::Cell;
using document::number_cell;
using document::NumberFormat;

// A part of the way that takes time, in seconds; nullopt: it is not known, or the level has none.
struct CycleStep {
  const char *id, *title;
  std::optional<double> (*seconds)(const TrainedLevel& level);
};

std::optional<double> prepare_seconds(const TrainedLevel& level) {
  const auto ms = analysis::cold_start(*level.row, &store::ColdStart::prepare_ms);
  return ms ? std::optional(*ms * 1e-3) : std::nullopt;
}

std::optional<double> start_seconds(const TrainedLevel& level) {
  const double ms = analysis::start_part(*level.row, &store::StartUp::total_ms);
  return std::isfinite(ms) ? std::optional(ms * 1e-3) : std::nullopt;
}

template <const char* name>
std::optional<double> mean_seconds(const TrainedLevel& level) {
  const auto spread = level.learning.mean_of_all(name);
  return spread ? std::optional(spread->mean) : std::nullopt;
}

constexpr char kEpoch[] = "epoch_seconds", kScore[] = "score_seconds";
constexpr CycleStep kCycleSteps[] = {{"prepare", "prepare", prepare_seconds},
                                     {"start", "start", start_seconds},
                                     {"epoch", "train an epoch", mean_seconds<kEpoch>},
                                     {"test", "test", mean_seconds<kScore>}};

document::Table cycle_table(const std::vector<TrainedLevel>& levels) {
  document::Table table{.id = "life_cycle",
                        .title = "From code to test",
                        .columns = {{.id = "level", .title = "level", .align = document::Align::left},
                                    {.id = "lines", .title = "maintained lines"}}};
  for (const auto& step : kCycleSteps) table.columns.push_back({.id = step.id, .title = step.title});
  table.columns.push_back({.id = "deployment_size", .title = "deployment size"});
  for (const auto& level : levels) {
    if (!level.measured()) continue;
    const auto& lines = level.row->info.lines;
    std::vector<Cell> row{level.row->name(),
                          number_cell(lines ? std::optional<double>(lines->total) : std::nullopt, NumberFormat::count)};
    for (const auto& step : kCycleSteps) row.push_back(number_cell(step.seconds(level), NumberFormat::seconds));
    const auto shipped = analysis::shipped_bytes(*level.row);
    row.push_back(
        number_cell(shipped ? std::optional(static_cast<double>(*shipped)) : std::nullopt, NumberFormat::bytes));
    table.rows.push_back(std::move(row));
  }
  table.note =
      "Lines: code that is kept for this level beside the model's own, where it can be counted. Prepare: building or "
      "compiling what it runs, the first time. Start: a process with warm caches up to its first step, median. Test: "
      "scoring after an epoch, all test images and as many of those that it learned from. Capturing the network is "
      "done "
      "once for all levels. Empty: none, or not known.";
  return table;
}

struct BestLevel {
  const TrainedLevel* level = nullptr;
  double seconds = 0;
};

BestLevel best_level(const std::vector<TrainedLevel>& levels, const CycleStep& step) {
  BestLevel best;
  for (const auto& level : levels) {
    if (!level.measured()) continue;
    const auto seconds = step.seconds(level);
    if (seconds && *seconds > 0 && (!best.level || *seconds < best.seconds)) best = {&level, *seconds};
  }
  return best;
}

// By how much more time the reference takes, as a share of the best's.
std::string words_of_distance(double behind) {
  if (behind <= analysis::kNear) return fmt::format("within {:.0f}%", 100 * analysis::kNear);
  if (behind > analysis::kFar) return fmt::format("more than {:.0f}% behind", 100 * analysis::kFar);
  return "in between";
}

document::Table behind_table(const std::vector<TrainedLevel>& levels, const TrainedLevel& reference) {
  const auto name = reference.row->name();
  document::Table table{.id = "reference_behind", .title = fmt::format("How far {} is behind the best", name)};
  table.columns = {{.id = "what", .title = "what", .align = document::Align::left},
                   {.id = "reference", .title = name},
                   {.id = "best", .title = "best"},
                   {.id = "level", .title = "level", .align = document::Align::left},
                   {.id = "ratio", .title = "ratio"},
                   {.id = "behind", .title = "behind", .align = document::Align::left}};
  for (const auto& step : kCycleSteps) {
    const auto own = step.seconds(reference);
    const auto best = best_level(levels, step);
    if (!own || !best.level) continue;
    table.rows.push_back({step.title, document::Number{.value = *own, .format = NumberFormat::seconds},
                          document::Number{.value = best.seconds, .format = NumberFormat::seconds},
                          best.level->row->name(),
                          document::Number{.value = *own / best.seconds, .format = NumberFormat::ratio},
                          words_of_distance(*own / best.seconds - 1)});
  }
  table.note =
      "Of means without intervals: the best of several levels looks better than it is. ./strata compare --mode train "
      "has a step's speedup with its interval.";
  return table;
}

}  // namespace

document::Section life_cycle(const std::vector<TrainedLevel>& levels, const store::Case& run_case, bool reliable) {
  document::Section section{.id = "life_cycle", .title = "From code to test"};
  auto table = cycle_table(levels);
  if (table.rows.empty()) return section;
  section.items.push_back(std::move(table));
  const auto* reference = reference_of(levels, run_case);
  if (reliable && reference && reference->measured() && levels.size() > 1)
    if (auto behind = behind_table(levels, *reference); !behind.rows.empty())
      section.items.push_back(std::move(behind));
  return section;
}

}  // namespace strata::report
