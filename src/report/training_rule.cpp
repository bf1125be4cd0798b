// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "report/training_sections.hpp"
#include "stats/convergence.hpp"

namespace strata::report {
namespace {

using stats::Convergence;

Convergence convergence_of(const analysis::Learner& learner, double target) {
  return stats::convergence(learner.learning->epochs_until("test_accuracy", target));
}

document::Cell epochs_cell(double value, const char* why) {
  if (!std::isfinite(value)) return document::Absent{why};
  return document::Number{.value = value, .format = document::NumberFormat::digits};
}

bool has_enough_runs(const Convergence& convergence) {
  return convergence.runs >= stats::kRcpFewestRuns;
}

// Every repeat: none could have been faster.
bool at_once(const Convergence& convergence) {
  return convergence.never == 0 && convergence.mean <= 1 && convergence.deviation == 0;
}

// The verdict on `level`, as a submission against the reference and the other way round.
std::string words_by_rule(const Convergence& reference, const Convergence& level) {
  if (!has_enough_runs(level))
    return fmt::format("not judged: {} of at least {} repeats ended", level.runs, stats::kRcpFewestRuns);
  if (!level.converges()) return fmt::format("does not converge: {} of {} repeats never did", level.never, level.runs);
  if (level.mean < stats::fewest_epochs(reference, level.runs_used())) return "too fast: it learns otherwise";
  if (level.never > 0) return "not too fast; not judged the other way, since a repeat never reached the target";
  if (reference.mean < stats::fewest_epochs(level, reference.runs_used())) return "too slow: it learns otherwise";
  if (at_once(reference) && at_once(level)) return "no power: both are at the target at the first evaluation";
  return "passes in both directions";
}

}  // namespace

document::Section mlperf_rule(const analysis::Learner& reference, const std::vector<analysis::Learner>& others,
                              double target) {
  document::Section section{.id = "rule", .title = "MLPerf's check of convergence"};
  const auto own = convergence_of(reference, target);
  if (!has_enough_runs(own) || own.never > 0) {
    section.items.push_back(document::Text{
        fmt::format("Nothing can be judged by it: {} of {} repeats of {} came to {:g}% of test images; the rule wants "
                    "all of them, and at least {}.",
                    own.runs - own.never, own.runs, reference.name, 100 * target, stats::kRcpFewestRuns),
        document::Text::Kind::warning});
    return section;
  }
  if (at_once(own))
    section.items.push_back(document::Text{
        fmt::format("The rule has no power here: every repeat of {} reaches {:g}% at the first evaluation, so that no "
                    "level could be too fast. Take a higher --target.",
                    reference.name, 100 * target),
        document::Text::Kind::warning});
  document::Table table{.id = "mlperf", .title = fmt::format("Epochs to {:g}% of test images", 100 * target)};
  table.columns = {{.id = "level", .title = "level", .align = document::Align::left},
                   {.id = "repeats", .title = "repeats"},
                   {.id = "epochs", .title = "epochs"},
                   {.id = "fewest", .title = "fewest allowed"},
                   {.id = "fewest_of_reference", .title = "fewest the reference may take"},
                   {.id = "verdict", .title = "verdict", .align = document::Align::left}};
  for (const auto& other : others) {
    const auto level = convergence_of(other, target);
    const bool judged = has_enough_runs(level);
    const double none = std::nan("");
    table.rows.push_back(
        {other.name,
         document::Number{.value = static_cast<double>(level.runs), .format = document::NumberFormat::count},
         epochs_cell(judged ? level.mean : none, judged ? "does not converge" : "too few repeats"),
         epochs_cell(judged ? stats::fewest_epochs(own, level.runs_used()) : none, "too few repeats"),
         epochs_cell(judged ? stats::fewest_epochs(level, own.runs_used()) : none,
                     judged ? "a repeat never did" : "too few repeats"),
         words_by_rule(own, level)});
  }
  table.note = fmt::format(
      "{}, with {} as the reference, whose mean is {:.4g}, and then with each level as the reference of {}. Means "
      "without the fastest and the slowest repeat; a one-sided t test at 5%, of samples that share the reference's "
      "deviation. MLPerf asks for twice as many runs of the reference, and looks at the first direction alone.",
      stats::kRcpVersion, reference.name, own.mean, reference.name);
  section.items.push_back(std::move(table));
  return section;
}

}  // namespace strata::report
