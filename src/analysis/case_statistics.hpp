// SPDX-License-Identifier: Apache-2.0
// What the raw samples of a case say about its measured rows: each row's time, rows against each other, what a start
// costs and after how many iterations it pays. Everything is computed from the blocks anew.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "analysis/result.hpp"
#include "stats/compare.hpp"
#include "stats/disturbed.hpp"
#include "store/record.hpp"

namespace strata::analysis {

// The variation between processes that a case was measured with (its stored `trust`); assumed where it has none.
double process_sigma(const store::Trust& trust, int threads);

// The logarithm of a row's median time in each restart that has undisturbed rounds.
std::vector<double> restart_log_times(const store::Row& row, const stats::CoreBudget& room);

// Numbers of rows are places in `measured()`.
class CaseStatistics {
 public:
  CaseStatistics(const store::Run& run, const store::Case& run_case);

  const std::vector<const store::Row*>& measured() const { return measured_; }
  std::optional<std::size_t> index_of(const std::string& name) const;
  std::optional<std::size_t> reference() const { return reference_; }
  // The best row of the reference's level; no row is tuned where the run was not.
  std::optional<std::size_t> tuned_reference() const { return tuned_reference_; }
  bool has_tuned() const { return !tuned_.empty(); }
  bool is_tuned(std::size_t i) const { return std::find(tuned_.begin(), tuned_.end(), i) != tuned_.end(); }

  const stats::CoreBudget& room() const { return room_; }
  double sigma() const { return sigma_; }      // the process effect where no earlier run showed it
  double minimum() const { return minimum_; }  // smaller differences are never claimed
  bool together() const { return together_; }  // levels took turns
  // False: others took cores that the threads need, and most blocks with them. Then no verdict is given at all.
  bool reliable() const { return reliable_; }
  int blocks() const { return blocks_counted_; }
  int disturbed_blocks() const { return disturbed_blocks_; }

  double estimate_ms(std::size_t i) const { return times_[i].milliseconds; }
  // The estimate is the median of all samples: most of the row's blocks were disturbed, or the model left their range.
  bool estimate_is_median(std::size_t i) const { return times_[i].is_median; }
  stats::Comparison compare(std::size_t reference, std::size_t level) const;
  // The same of the processor time of their processes, whoever else had the cores; nullopt: not known of every block.
  std::optional<stats::Comparison> compare_by_processor(std::size_t reference, std::size_t level) const;
  stats::Interval difference_ms(std::size_t reference, std::size_t level) const;
  stats::Direction direction(const stats::Comparison& comparison) const;
  double smallest_visible(const stats::Comparison& comparison) const;
  int restarts_begun() const;  // of which some may have no undisturbed round
  // A row against itself, of a run with --aa.
  stats::Comparison aa(const store::Row& row) const;
  // Starts from caches only; the median of several.
  stats::Interval start_range(const store::Row& row) const;

  std::optional<Ratio> ratio(std::optional<std::size_t> reference, std::size_t i) const;
  std::optional<BreakEven> break_even(std::optional<std::size_t> reference, std::size_t i) const;
  std::optional<BreakEven> break_even_once(std::optional<std::size_t> reference, std::size_t i) const;

 private:
  void find_tuned();
  bool find_reliable();
  void settle_times();
  std::optional<Resolve> resolve(const stats::Comparison& comparison) const;
  std::optional<BreakEven> after_cost(std::size_t reference, std::size_t i, const stats::Interval& extra_ms) const;
  std::optional<stats::Interval> built_ms(const store::Row& row) const;

  const store::Run& run_;
  const store::Case& case_;
  stats::CoreBudget room_;
  double sigma_, minimum_;
  bool together_, reliable_ = true;
  int blocks_counted_ = 0, disturbed_blocks_ = 0;
  std::vector<const store::Row*> measured_;
  std::optional<std::size_t> reference_, tuned_reference_;
  std::vector<std::size_t> tuned_;  // of each level its best row, if the run was tuned
  stats::Blocks blocks_;
  std::vector<stats::ShownTime> times_;  // of each measured row
};

}  // namespace strata::analysis
