// SPDX-License-Identifier: Apache-2.0
#include "analysis/accuracy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/blocks.hpp"
#include "analysis/case_statistics.hpp"
#include "stats/compare.hpp"
#include "stats/sample.hpp"

namespace strata::analysis {
namespace {

// Cases that are equal but for their precision.
struct Group {
  std::vector<std::size_t> cases;  // indices, in the run's order
  std::optional<std::size_t> strict;
};

// What the user's own score says of a row, against that of the reference.
std::optional<EvalFacts> eval_of(const store::Row& row, const store::Row* reference) {
  if (!row.info.eval) return std::nullopt;
  const auto& own = *row.info.eval;
  EvalFacts eval{.state = own.state, .reason = own.reason, .hint = own.hint, .count = own.count, .score = own.score};
  const auto theirs = reference ? reference->info.eval : std::nullopt;
  if (!own.is_scored() || !theirs || !theirs->is_scored()) return eval;
  if (!own.per_example.empty() && own.per_example.size() == theirs->per_example.size())
    eval.difference = paired_difference(own.per_example, theirs->per_example);
  else
    eval.difference = Estimate(own.score.value_or(0) - theirs->score.value_or(0), std::nullopt, std::nullopt);
  if (!own.answers.empty() && own.answers.size() == theirs->answers.size()) {
    std::int64_t differ = 0;
    for (std::size_t i = 0; i < own.answers.size(); ++i) differ += own.answers[i] != theirs->answers[i];
    eval.differ = differ;
  }
  return eval;
}

class GroupBuilder {
 public:
  GroupBuilder(const store::Run& run, const std::vector<CaseResult>& cases, Group group)
      : run_(run), cases_(cases), group_(std::move(group)) {
    if (!group_.strict) return;
    const auto& strict_case = run_.cases[*group_.strict];
    for (const auto& row : strict_case.rows)
      if (row.name() == strict_case.reference_level && row.state == State::measured) reference_ = &row;
  }

  AccuracyGroup build() const {
    AccuracyGroup out{.id = without_precision(run_.cases[group_.cases.front()]),
                      .score = run_.settings.eval,
                      .measured_apart = group_.cases.size() > 1};
    if (reference_) out.reference = {run_.cases[*group_.strict].id, reference_->name(), "fp32"};
    for (const auto index : group_.cases)
      for (std::size_t i = 0; i < run_.cases[index].rows.size(); ++i) {
        const auto& row = run_.cases[index].rows[i];
        if (row.state == State::measured && !row.info.harness)
          out.points.push_back(point(index, row, cases_[index].rows[i]));
      }
    return out;
  }

 private:
  // The id with * for the mode.
  static std::string without_precision(const store::Case& run_case) {
    const auto precision = fmt::format("/{}/", name_of(run_case.question.precision));
    auto id = run_case.id;
    if (const auto at = id.find(precision); at != std::string::npos) id.replace(at, precision.size(), "/*/");
    return id;
  }

  AccuracyPoint point(std::size_t index, const store::Row& row, const RowResult& result) const {
    AccuracyPoint out{.case_id = run_.cases[index].id,
                      .level = row.level,
                      .variant = row.variant,
                      .environment = row.environment,
                      .precision = std::string(name_of(run_.cases[index].question.precision)),
                      .reference = &row == reference_,
                      .reliable = is_reliable(index),
                      .time_ms = result.estimate_ms(),
                      .ratio = ratio(index, row, result),
                      .eval = eval_of(row, reference_)};
    if (const auto& accuracy = row.info.accuracy) {
      out.error = accuracy->error;
      out.answers = accuracy->answers;
      out.differ = accuracy->differ;
    }
    return out;
  }

  // Others did not have the cores while the case was measured.
  bool is_reliable(std::size_t index) const { return cases_[index].trust.reliable; }

  // Within the reference's own case levels took turns; another case ran before or after it.
  std::optional<PointRatio> ratio(std::size_t index, const store::Row& row, const RowResult& result) const {
    if (!reference_ || !is_reliable(index) || !is_reliable(*group_.strict)) return std::nullopt;
    if (index == *group_.strict) {
      if (!result.ratio) return std::nullopt;
      return PointRatio{*result.ratio, true};
    }
    const auto& strict = run_.cases[*group_.strict];
    const double sigma = process_sigma(strict.trust, strict.question.threads);
    const auto room = core_budget_of(strict.question, run_.machine);
    auto apart = stats::compare_unpaired(restart_log_times(*reference_, room), restart_log_times(row, room), sigma);
    // The same two levels side by side cancel the machine's drift; two cases after each other cannot know them better.
    for (const auto with : {*group_.strict, index}) {
      const CaseStatistics paired(run_, run_.cases[with]);
      const auto reference = paired.index_of(reference_->name()), level = paired.index_of(row.name());
      if (reference && level && reference != level)
        apart = stats::no_narrower_than(apart, paired.compare(*reference, *level).half_width);
    }
    return PointRatio{Estimate(apart.ratio()), false};
  }

  const store::Run& run_;
  const std::vector<CaseResult>& cases_;
  Group group_;
  const store::Row* reference_ = nullptr;
};

}  // namespace

Estimate paired_difference(const std::vector<double>& level, const std::vector<double>& reference) {
  const std::size_t count = std::min(level.size(), reference.size());
  if (count == 0) return {};
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < count; ++i) sum += level[i] - reference[i];
  const double n = static_cast<double>(count), mean = sum / n;
  if (count < 2) return {mean, std::nullopt, std::nullopt};
  for (std::size_t i = 0; i < count; ++i) squares += std::pow(level[i] - reference[i] - mean, 2);
  const double half = stats::student_t_quantile(0.995, n - 1) * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half};
}

std::vector<AccuracyGroup> accuracy(const store::Run& run, const std::vector<CaseResult>& cases) {
  std::vector<std::string> order;
  std::map<std::string, Group> groups;
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    auto same = run.cases[i].question;
    if (same.mode != core::Mode::infer) continue;
    const bool strict = same.precision == core::Precision::fp32;
    same.precision = core::Precision::fp32;
    const auto key = same.canonical() + run.cases[i].network;
    if (!groups.contains(key)) order.push_back(key);
    auto& group = groups[key];
    group.cases.push_back(i);
    if (strict) group.strict = i;
  }
  std::vector<AccuracyGroup> out;
  for (const auto& key : order) {
    const auto& group = groups[key];
    const bool scored = std::any_of(group.cases.begin(), group.cases.end(), [&](std::size_t i) {
      return std::any_of(run.cases[i].rows.begin(), run.cases[i].rows.end(),
                         [](const auto& row) { return row.info.eval.has_value(); });
    });
    if (group.cases.size() > 1 || scored) out.push_back(GroupBuilder(run, cases, group).build());
  }
  return out;
}

}  // namespace strata::analysis
