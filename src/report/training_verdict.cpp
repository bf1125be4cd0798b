// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/training_sections.hpp"

namespace strata::report {
namespace {

using analysis::Judged;
using stats::EquivalenceVerdict;

document::Cell difference_cell(const stats::PairedTest& test) {
  document::Number number{.value = test.mean, .format = document::NumberFormat::digits};
  if (std::isfinite(test.half95)) {
    number.low = test.mean - test.half95;
    number.high = test.mean + test.half95;
  }
  return number;
}

std::string words_of(const Judged& judged, double margin) {
  const auto word = std::string(to_string(judged.likeness));
  if (judged.likeness == EquivalenceVerdict::equivalent && judged.test.excludes_zero())
    return word + ", though not the same";
  if (judged.likeness != EquivalenceVerdict::inconclusive) return word;
  if (judged.test.repeats < 2) return word + ": one repeat has no scatter";
  const auto needed = stats::repeats_to_decide(judged.test, margin);
  return needed && *needed > judged.test.repeats ? fmt::format("{}: about {} repeats would decide", word, *needed)
                                                 : word;
}

std::string margin_words(double share) {
  return fmt::format("{:g} percentage point{}", 100 * share, share == 0.01 ? "" : "s");
}

// Percentage points of a share.
Judged in_points(Judged judged) {
  for (double* value : {&judged.test.mean, &judged.test.half90, &judged.test.half95}) *value *= 100;
  return judged;
}

}  // namespace

document::Section verdicts(const Learner& reference, const std::vector<Learner>& others, const Margins& margins,
                           double test_images) {
  document::Section section{.id = "verdict", .title = fmt::format("Does it learn as {} does?", reference.name)};
  const auto accuracy = analysis::judge_accuracy(reference, others, margins.accuracy, test_images);
  const auto loss = analysis::judge_loss(reference, others, margins.loss);
  if (accuracy.empty()) return section;
  document::Table table{.id = "verdicts", .title = "Verdicts"};
  table.columns = {{.id = "level", .title = "level", .align = document::Align::left},
                   {.id = "repeats", .title = "repeats"},
                   {.id = "accuracy_difference", .title = "test accuracy", .unit = "percentage points"},
                   {.id = "accuracy_verdict", .title = "verdict", .align = document::Align::left},
                   {.id = "loss_difference", .title = "test loss"},
                   {.id = "loss_verdict", .title = "verdict", .align = document::Align::left}};
  for (const auto& verdict : accuracy) {
    std::vector<document::Cell> row{
        verdict.name,
        document::Number{.value = static_cast<double>(verdict.test.repeats), .format = document::NumberFormat::count},
        difference_cell(in_points(verdict).test), words_of(verdict, margins.accuracy)};
    const auto other =
        std::find_if(loss.begin(), loss.end(), [&](const Judged& two) { return two.name == verdict.name; });
    if (other != loss.end()) {
      row.push_back(difference_cell(other->test));
      row.emplace_back(words_of(*other, margins.loss));
    }
    table.rows.push_back(std::move(row));
  }
  table.note = fmt::format(
      "Level minus {0} after the last epoch, paired by repeat (same weights, order and images), with 95% intervals. "
      "Equivalent: the 90% interval lies within {1} (loss: {2:g}), margins that were fixed before. "
      "Different: Student's t at 5% for all levels together (Holm), and the difference is larger than the margin. "
      "Inconclusive: neither. Repeats that did not come to their end are left out.",
      reference.name, margin_words(margins.accuracy), margins.loss);
  section.items.push_back(std::move(table));
  return section;
}

std::string verdict_words(const Learner& reference, const std::vector<Learner>& others, const Margins& margins,
                          double test_images) {
  const auto all = analysis::judge_accuracy(reference, others, margins.accuracy, test_images);
  std::map<EquivalenceVerdict, std::vector<std::string>> by_word;
  for (const auto& element : all) by_word[element.likeness].push_back(element.name);
  std::vector<std::string> parts;
  for (const auto& [likeness, names] : by_word)
    parts.push_back(fmt::format("{} {}", fmt::join(names, ", "),
                                likeness == EquivalenceVerdict::equivalent  ? "equivalent to it"
                                : likeness == EquivalenceVerdict::different ? "different from it"
                                                                            : "inconclusive"));
  if (parts.empty() || by_word[EquivalenceVerdict::inconclusive].size() == all.size()) return {};
  return fmt::format(" Against {}, to {} of test accuracy: {}.", reference.name, margin_words(margins.accuracy),
                     fmt::join(parts, "; "));
}

}  // namespace strata::report
