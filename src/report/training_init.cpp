// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "analysis/signal_fate.hpp"
#include "report/training_sections.hpp"

namespace strata::report {
namespace {

using analysis::Fate;
using analysis::SignalFate;

std::optional<SignalFate> fate_of(const SchemeTraining& training, const TrainedLevel& level) {
  const auto& trust = training.run_case->trust;
  if (!level.measured() || !trust.commonest_class || !trust.test_images) return std::nullopt;
  return analysis::signal_fate(level.learning, sizes_of(level), *training.run_case->question.recipe,
                               analysis::above_chance(*trust.commonest_class, static_cast<double>(*trust.test_images)));
}

std::string outcome_words(const SignalFate& signal) {
  const auto word = std::string(to_string(signal.fate));
  return signal.learned > 0 && signal.learned < signal.repeats
             ? fmt::format("{} (learns in {} of {} repeats)", word, signal.learned, signal.repeats)
             : word;
}

document::Cell map_cell(const TrainedLevel& level, const std::optional<SignalFate>& signal) {
  if (!signal) return document::Absent{level.measured() ? "no epoch" : to_string(level.state)};
  if (!signal->accuracy) return outcome_words(*signal);
  return fmt::format("{}: {:.1f}%", outcome_words(*signal), 100 * *signal->accuracy);
}

std::vector<std::string> level_names(const std::vector<SchemeTraining>& trainings) {
  std::vector<std::string> names;
  for (const auto& training : trainings)
    for (const auto& level : training.levels)
      if (const auto name = level.row->name(); std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  return names;
}

document::Table scheme_map(const std::vector<SchemeTraining>& trainings) {
  document::Table table{.id = "initialisations",
                        .title = "What becomes of each scheme",
                        .columns = {{.id = "scheme", .title = "begins with", .align = document::Align::left}}};
  const auto names = level_names(trainings);
  for (const auto& name : names) table.columns.push_back({.id = name, .title = name, .align = document::Align::left});
  for (const auto& training : trainings) {
    std::vector<document::Cell> row{training.scheme()};
    for (const auto& name : names) {
      const auto level =
          std::find_if(training.levels.begin(), training.levels.end(),
                       [&](const TrainedLevel& trained_level) { return trained_level.row->name() == name; });
      row.push_back(level == training.levels.end() ? document::Cell{document::Absent{"not run"}}
                                                   : map_cell(*level, fate_of(training, *level)));
    }
    table.rows.push_back(std::move(row));
  }
  table.note =
      "Learns: after the last epoch it finds more of the test images than always naming the commonest class would, by "
      "three standard errors, and its loss was finite throughout; in every repeat. Else what was seen first: a signal "
      "that vanishes or explodes, by layer and step below. The share is that of the test images at the end.";
  return table;
}

document::Table scheme_details(const std::vector<SchemeTraining>& trainings) {
  document::Table table{.id = "first_seen", .title = "Where it is seen first"};
  table.columns = {{.id = "scheme", .title = "begins with", .align = document::Align::left},
                   {.id = "level", .title = "level", .align = document::Align::left},
                   {.id = "outcome", .title = "outcome", .align = document::Align::left},
                   {.id = "step", .title = "step"},
                   {.id = "layer", .title = "layer", .align = document::Align::left},
                   {.id = "what", .title = "what", .align = document::Align::left}};
  for (const auto& training : trainings)
    for (const auto& level : training.levels) {
      const auto fate = fate_of(training, level);
      if (!fate || (fate->words.empty() && fate->fate == Fate::learns)) continue;
      const auto step = fate->step ? document::Cell{document::Number{.value = static_cast<double>(*fate->step),
                                                                     .format = document::NumberFormat::count}}
                                   : document::Cell{document::Absent{}};
      table.rows.push_back(
          {training.scheme(), level.row->name(), outcome_words(*fate), step, fate->layer,
           fate->words.empty() ? "no layer's signal vanished or exploded in the steps looked at" : fate->words});
    }
  table.note =
      "Of the first repeat that did not learn, else of the first; of levels that learn, only what was seen all the "
      "same. Steps count from 1. What vanishing and exploding mean: docs/training.md.";
  return table;
}

// "normal:1 (explodes at eager, static)".
std::string exceptions(const std::string& scheme, const std::map<Fate, std::vector<std::string>>& by_fate) {
  std::vector<std::string> parts;
  for (const auto& [fate, names] : by_fate)
    if (fate != Fate::learns) parts.push_back(fmt::format("{} at {}", to_string(fate), fmt::join(names, ", ")));
  return fmt::format("{} ({})", scheme, fmt::join(parts, "; "));
}

}  // namespace

document::Section initialisations(const std::vector<SchemeTraining>& trainings) {
  document::Section section{.id = "initialisations", .title = "Initialisations", .items = {scheme_map(trainings)}};
  if (auto details = scheme_details(trainings); !details.rows.empty()) section.items.push_back(std::move(details));
  return section;
}

std::string initialisation_words(const std::vector<SchemeTraining>& trainings) {
  std::vector<std::string> learn, others;
  for (const auto& training : trainings) {
    std::map<Fate, std::vector<std::string>> by_fate;
    for (const auto& level : training.levels)
      if (const auto fate = fate_of(training, level)) by_fate[fate->fate].push_back(level.row->name());
    if (by_fate.empty()) continue;
    if (by_fate.size() == 1 && by_fate.contains(Fate::learns))
      learn.push_back(training.scheme());
    else
      others.push_back(exceptions(training.scheme(), by_fate));
  }
  if (learn.empty() && others.empty()) return "No level has an epoch behind it.";
  std::string words = learn.empty() ? std::string("No scheme learns at every level")
                                    : fmt::format("Learns at every level from {}", fmt::join(learn, ", "));
  if (!others.empty()) words += fmt::format("; not everywhere from {}", fmt::join(others, "; "));
  return words + ".";
}

}  // namespace strata::report
