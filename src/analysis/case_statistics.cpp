// SPDX-License-Identifier: Apache-2.0
#include "analysis/case_statistics.hpp"

#include <fmt/format.h>

#include <cmath>

#include "analysis/blocks.hpp"
#include "analysis/estimate.hpp"
#include "analysis/learn.hpp"
#include "analysis/reliability.hpp"
#include "common/lookup.hpp"
#include "requests/commands.hpp"

namespace strata::analysis {
using lookup::number;

namespace {

// Of one of the levels.
std::vector<double> log_times(const stats::Blocks& blocks, std::size_t level) {
  std::vector<double> logs;
  for (const auto& restart : blocks) {
    std::vector<double> values;
    for (const auto& round : restart)
      if (std::isfinite(round[level])) values.push_back(std::log(round[level]));
    if (!values.empty()) logs.push_back(stats::median(values));
  }
  return logs;
}

}  // namespace

std::vector<double> restart_log_times(const store::Row& row, const stats::CoreBudget& room) {
  return log_times(medians({&row}, room, 0), 0);
}

double process_sigma(const store::Trust& trust, int threads) {
  const double stored = trust.process_sigma.value_or(0);
  return stored > 0 && stored < 100 ? stored : stats::assumed_process_sigma(threads);
}

CaseStatistics::CaseStatistics(const store::Run& run, const store::Case& run_case)
    : run_(run),
      case_(run_case),
      room_(core_budget_of(run_case.question, run.machine)),
      sigma_(process_sigma(run_case.trust, room_.threads)),
      minimum_(run_case.trust.minimum_effect.value_or(kMinimumEffect)),
      together_(run_case.trust.together.value_or(true)) {
  for (const auto& row : run_case.rows)
    if (row.state == State::measured && !row.blocks.empty()) {  // a training has epochs and no blocks
      if (row.name() == run_case.reference_level) reference_ = measured_.size();
      measured_.push_back(&row);
    }
  reliable_ = find_reliable();
  blocks_ = medians(measured_, room_, 0);
  settle_times();
  if (run.settings.tuned) find_tuned();
}

bool CaseStatistics::find_reliable() {
  for (const auto* row : measured_)
    for (const auto& why : disturbances(*row, room_)) {
      ++blocks_counted_;
      disturbed_blocks_ += !why.empty();
    }
  return is_reliable(case_, room_, static_cast<std::size_t>(disturbed_blocks_),
                     static_cast<std::size_t>(blocks_counted_));
}

std::optional<std::size_t> CaseStatistics::index_of(const std::string& name) const {
  for (std::size_t i = 0; i < measured_.size(); ++i)
    if (measured_[i]->name() == name) return i;
  return std::nullopt;
}

void CaseStatistics::settle_times() {
  const auto joint = stats::joint_estimates(blocks_).milliseconds;
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    const auto why = disturbances(*measured_[i], room_);
    std::vector<double> samples_ms;
    double blocks = 0, disturbed = 0;
    for (std::size_t b = 0; b < why.size(); ++b) {
      const auto& block = measured_[i]->blocks[b];
      if (block.instance != 0) continue;
      ++blocks;
      disturbed += !why[b].empty();
      for (const auto ns : block.wall_ns) samples_ms.push_back(static_cast<double>(ns) * 1e-6);
    }
    times_.push_back(
        stats::shown_time(i < joint.size() ? joint[i] : stats::nan, samples_ms, blocks > 0 ? disturbed / blocks : 0));
  }
}

int CaseStatistics::restarts_begun() const {
  return static_cast<int>(blocks_.size());
}

// A level whose variants were tried is represented by the best of them, every other by its default.
void CaseStatistics::find_tuned() {
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    const auto* row = measured_[i];
    const bool chosen = row->info.tuned;
    const bool other_chosen = std::any_of(measured_.begin(), measured_.end(), [&](const auto* other) {
      return other->level == row->level && other->environment == row->environment && other->info.tuned;
    });
    if (row->info.harness || !(chosen || (!other_chosen && row->variant == "default"))) continue;
    tuned_.push_back(i);
    if (!reference_) continue;
    const auto* reference = measured_[*reference_];
    if (row->level == reference->level && row->environment == reference->environment) tuned_reference_ = i;
  }
}

stats::Comparison CaseStatistics::compare(std::size_t reference, std::size_t level) const {
  if (together_)
    return stats::compare(stats::log_differences(blocks_, reference, level), sigma_,
                          learned_of(case_.trust, measured_[reference]->name(), measured_[level]->name()));
  // Never measured side by side: only the restarts' own medians can be compared.
  return stats::compare_unpaired(log_times(blocks_, reference), log_times(blocks_, level), sigma_);
}

std::optional<stats::Comparison> CaseStatistics::compare_by_processor(std::size_t reference, std::size_t level) const {
  auto used = blocks_;
  for (auto& restart : used) restart.assign(restart.size(), {stats::nan, stats::nan});
  for (const auto which : {reference, level})
    for (const auto& block : measured_[which]->blocks) {
      if (block.instance != 0) continue;
      if (!block.cpu_ns || *block.cpu_ns <= 0 || block.wall_ns.empty()) return std::nullopt;
      used[static_cast<std::size_t>(block.restart)][static_cast<std::size_t>(block.round)][which == level] =
          static_cast<double>(*block.cpu_ns) / static_cast<double>(block.wall_ns.size());
    }
  auto comparison = stats::compare(stats::log_differences(used, 0, 1), sigma_);
  return std::isfinite(comparison.log_ratio.value) ? std::optional(std::move(comparison)) : std::nullopt;
}

stats::Interval CaseStatistics::difference_ms(std::size_t reference, std::size_t level) const {
  return stats::difference_ms(estimate_ms(reference), estimate_ms(level), compare(reference, level));
}

stats::Direction CaseStatistics::direction(const stats::Comparison& comparison) const {
  if (!reliable_) return stats::Direction::inconclusive;
  return stats::judge(comparison, minimum_).direction;
}

double CaseStatistics::smallest_visible(const stats::Comparison& comparison) const {
  return stats::smallest_visible(comparison, minimum_);
}

stats::Interval CaseStatistics::start_range(const store::Row& row) const {
  std::vector<double> values;
  for (const auto& start : row.start_up)
    if (!start.cold) values.push_back(start.total_ms.value_or(0));
  return stats::range_of(values);
}

// The command and the minutes that would decide what this run could not.
std::optional<Resolve> CaseStatistics::resolve(const stats::Comparison& comparison) const {
  const auto restarts = stats::restarts_to_resolve(comparison, minimum_);
  if (!restarts || *restarts > 60) return std::nullopt;
  const auto& effort = run_.settings.effort;
  const double per_restart = effort.budget_s.value_or(60) / std::max(1, effort.restarts.value_or(4));
  double starts_s = 0;
  for (const auto* row : measured_) starts_s += start_range(*row).value / 1000 + 1;
  const double minutes = *restarts * (per_restart + starts_s) / 60;
  auto request = requests::request_of_run(run_.settings);
  auto* asked = request ? std::get_if<requests::CompareRequest>(&*request) : nullptr;
  if (asked == nullptr || asked->options.restarts || asked->options.budget_s) return std::nullopt;
  asked->options.restarts = *restarts;
  asked->options.budget_s = std::round(*restarts * per_restart);
  return Resolve{requests::command_of(*request, run_.settings.kept.store), minutes};
}

std::optional<Ratio> CaseStatistics::ratio(std::optional<std::size_t> reference, std::size_t i) const {
  if (!reference) return std::nullopt;
  if (i == *reference) {
    Ratio itself;
    itself.value = itself.low = itself.high = 1.0;
    itself.verdict = RatioVerdict::reference;
    return itself;
  }
  const auto comparison = compare(*reference, i);
  const auto verdict = reliable_ ? stats::judge(comparison, minimum_) : stats::Verdict{};
  Ratio ratio{Estimate(comparison.ratio())};
  ratio.verdict = verdict_of(verdict.direction);
  ratio.same_within_percent = finite(verdict.same_within * 100);
  ratio.smallest_visible_percent = finite(smallest_visible(comparison) * 100);
  ratio.rests_on = stats::to_string(comparison.half_width.basis);
  ratio.learned = learned_from_runs(comparison);
  ratio.by_restart = by_restart(comparison);
  if (const auto by_processor = reliable_ ? std::nullopt : compare_by_processor(*reference, i))
    ratio.by_processor_time = Estimate(by_processor->ratio());
  if (reliable_ && verdict.direction == stats::Direction::inconclusive) ratio.resolve = resolve(comparison);
  return ratio;
}

std::optional<BreakEven> CaseStatistics::break_even(std::optional<std::size_t> reference, std::size_t i) const {
  if (!reference || i == *reference) return std::nullopt;
  const auto own = start_range(*measured_[i]), theirs = start_range(*measured_[*reference]);
  return after_cost(*reference, i, {own.value - theirs.value, own.low - theirs.high, own.high - theirs.low});
}

// What the very first start took longer than one from caches: preparing and compiling. Seen once, so that its range is
// that of the starts from caches.
std::optional<stats::Interval> CaseStatistics::built_ms(const store::Row& row) const {
  const auto& cold = row.info.cold_start;
  const auto warm = start_range(row);
  if (!cold) return std::nullopt;
  return stats::Interval{std::max(0.0, cold->total_ms - warm.value), std::max(0.0, cold->total_ms - warm.high),
                         std::max(0.0, cold->total_ms - warm.low)};
}

std::optional<BreakEven> CaseStatistics::break_even_once(std::optional<std::size_t> reference, std::size_t i) const {
  if (!reference || i == *reference) return std::nullopt;
  const auto own = built_ms(*measured_[i]), theirs = built_ms(*measured_[*reference]);
  if (!own || !theirs) return std::nullopt;
  return after_cost(*reference, i, {own->value - theirs->value, own->low - theirs->high, own->high - theirs->low});
}

// Iterations that pay for what level `i` costs more than the reference.
std::optional<BreakEven> CaseStatistics::after_cost(std::size_t reference, std::size_t i,
                                                    const stats::Interval& extra_ms) const {
  const auto comparison = compare(reference, i);
  const auto repaid_after = stats::break_even(extra_ms, difference_ms(reference, i), direction(comparison));
  const Estimate iterations(repaid_after.iterations);
  return BreakEven{.iterations = iterations.value,
                   .low = iterations.low,
                   .high = iterations.high,
                   .never = repaid_after.never,
                   .inconclusive = repaid_after.inconclusive};
}

stats::Comparison CaseStatistics::aa(const store::Row& row) const {
  return stats::compare(stats::log_differences(twins(row, room_), 0, 1), sigma_,
                        learned_of(case_.trust, row.name(), row.name()));
}

}  // namespace strata::analysis
