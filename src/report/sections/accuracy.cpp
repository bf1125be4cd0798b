// SPDX-License-Identifier: Apache-2.0
// Accuracy against speed: a table, a figure and a sentence for each scored level.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/format.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

std::string change(double value) {
  return value == 0 ? "0" : fmt::format("{:+.2g}", value);
}

document::Cell word_or_absent(const std::string& shown) {
  return shown.empty() ? document::Cell{document::Absent{}} : document::Cell{shown};
}

// 0.0123 -> "1.2e-02": errors of different modes lie thousands of times apart.
std::string error_words(const analysis::AccuracyPoint& point) {
  return point.error ? fmt::format("{:.1e}", *point.error) : "";
}

analysis::OptionalNumber score_of(const analysis::AccuracyPoint& point) {
  return member_of(point.eval, &analysis::EvalFacts::score);
}

// Against the reference's score.
analysis::Estimate difference_of(const analysis::AccuracyPoint& point) {
  return point.eval && point.eval->difference ? *point.eval->difference : analysis::Estimate();
}

std::string score_difference(const analysis::AccuracyPoint& point) {
  const auto [value, low, high] = difference_of(point);
  if (!value || point.reference) return "";
  return low && high ? fmt::format("{} ({} to {})", change(*value), change(*low), change(*high)) : change(*value);
}

// "4 of 10,000"; "" where it is not known.
std::string of_count(analysis::OptionalNumber part, analysis::OptionalNumber whole) {
  return part && whole && *whole > 0 ? fmt::format("{} of {}", count(*part), count(*whole)) : "";
}

// "2 of 10,000", of the examples that the score is of.
std::string answers_that_differ(const analysis::AccuracyPoint& point) {
  return point.eval ? of_count(point.eval->differ, point.eval->count) : "";
}

document::Cell speedup_of_point(const analysis::AccuracyPoint& point) {
  if (point.reference) return "reference";
  auto cell = estimate_cell(point.ratio, document::NumberFormat::ratio);
  if (auto* speedup = std::get_if<document::Number>(&cell); speedup && !point.ratio->together) speedup->mark = "*";
  return cell;
}

std::string sentence_of_score(const analysis::AccuracyPoint& point, const std::string& reference) {
  std::string out = fmt::format("{} in {}: ", point.name(), point.precision);
  if (const auto faster = member_of(point.ratio, &analysis::PointRatio::value))
    out += fmt::format("{} times as fast, ", ratio(*faster));
  const auto [value, low, high] = difference_of(point);
  out += fmt::format("score {} against {}", value && *value == 0 ? "+0" : change(value.value_or(0)), reference);
  if (low && high) out += fmt::format(" (99%: {} to {})", change(*low), change(*high));
  if (const auto differ = answers_that_differ(point); !differ.empty())
    out += fmt::format(", {} answers differ", differ);
  return out;
}

// "fp32, bf16": the modes whose case was measured beside other programs.
std::string unreliable_modes(const std::vector<analysis::AccuracyPoint>& points) {
  std::vector<std::string> modes;
  for (const auto& point : points)
    if (!point.reliable && std::ranges::find(modes, point.precision) == modes.end()) modes.push_back(point.precision);
  return fmt::format("{}", fmt::join(modes, ", "));
}

bool is_scored(const std::vector<analysis::AccuracyPoint>& points) {
  return std::ranges::any_of(points, [](const auto& point) { return point.eval.has_value(); });
}

std::string note_of(const analysis::AccuracyGroup& group) {
  std::string note = group.reference ? fmt::format("Reference: {} in fp32.", group.reference->level)
                                     : "No reference: this run has no number for it in fp32.";
  note += " Error: relative, against float64.";
  if (const auto modes = unreliable_modes(group.points); !modes.empty())
    note += fmt::format(
        " The times in {} are not reliable and not compared: other programs had the cores while they were measured.",
        modes);
  if (group.measured_apart)
    note +=
        " * Modes were measured one after the other: the machine's drift between them is not cancelled, the interval "
        "holds the process effect.";
  return note;
}

document::Table accuracy_table(const analysis::AccuracyGroup& group) {
  const auto& points = group.points;
  const bool scored = is_scored(points);
  document::Table table{.id = "accuracy", .title = "Accuracy against speed", .note = note_of(group)};
  table.columns = {left_column("level", "level"),     left_column("precision", "precision"),
                   {.id = "time", .title = "time"},   {.id = "speedup", .title = "speedup (99% CI)"},
                   {.id = "error", .title = "error"}, {.id = "differ", .title = "other answer than float64"}};
  if (scored) {
    table.columns.push_back({.id = "score", .title = "score"});
    table.columns.push_back({.id = "score_difference", .title = "against the reference (99% CI)"});
    table.columns.push_back({.id = "answers_differ", .title = "answers that differ"});
  }
  for (const auto& point : points) {
    std::vector<document::Cell> cells{point.name(),
                                      point.precision,
                                      time_cell(point.time_ms),
                                      speedup_of_point(point),
                                      word_or_absent(error_words(point)),
                                      word_or_absent(of_count(point.differ, point.answers))};
    if (scored) {
      const bool reference = point.reference;
      cells.push_back(value_cell(score_of(point), document::NumberFormat::digits));
      cells.push_back(word_or_absent(score_difference(point)));
      cells.push_back(word_or_absent(reference ? "" : answers_that_differ(point)));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// A sentence for each level with a score, and for each that has none why.
std::vector<document::Text> score_sentences(const analysis::AccuracyGroup& group) {
  std::vector<document::Text> sentences;
  for (const auto& point : group.points) {
    if (!point.eval) continue;
    const auto& eval = *point.eval;
    if (eval.score && !point.reference && difference_of(point).value)
      sentences.push_back({sentence_of_score(point, group.reference ? group.reference->level : "")});
    if (!eval.score && !eval.state.empty() && eval.state != "scored")
      sentences.push_back(
          {fmt::format("{} in {}: {}: {}", point.name(), point.precision, eval.state, first_sentence(eval.reason))});
  }
  return sentences;
}

// Those that no other beats in time and in score (or error) together; times that others spoilt beat nothing. The line
// goes along first, then up or down.
document::Line frontier(std::vector<const analysis::AccuracyPoint*> points, const auto& height_of,
                        bool more_is_better) {
  document::Line line{.name = "frontier", .dashed = true};
  std::erase_if(points, [](const auto* point) { return !point->reliable; });
  std::ranges::stable_sort(points, {}, &analysis::AccuracyPoint::time_ms);
  for (const auto* point : points) {
    const double x = kSecondsPerMs * point->time_ms.value_or(0), y = height_of(*point).value_or(0);
    if (!line.y.empty() && !(more_is_better ? y > line.y.back() : y < line.y.back())) continue;
    if (!line.y.empty()) {
      line.x.push_back(x);
      line.y.push_back(line.y.back());
    }
    line.x.push_back(x);
    line.y.push_back(y);
  }
  return line;
}

document::Figure accuracy_figure(const analysis::AccuracyGroup& group) {
  const auto& points = group.points;
  const bool scored = std::ranges::any_of(points, [](const auto& point) { return score_of(point).has_value(); });
  const auto height_of = [scored](const analysis::AccuracyPoint& point) {
    return scored ? score_of(point) : point.error;
  };
  document::Panel panel{.x = {.title = "time of one iteration", .format = document::NumberFormat::seconds},
                        .y = {.title = scored ? "score" : "error against float64", .logarithmic = !scored}};
  std::vector<const analysis::AccuracyPoint*> drawn;
  for (const auto& point : points)
    if (const auto y = height_of(point); y && point.time_ms && (scored || *y > 0)) drawn.push_back(&point);
  for (const auto* point : drawn) {
    const auto level = point->name();
    auto line =
        std::find_if(panel.lines.begin(), panel.lines.end(), [&](const auto& other) { return other.name == level; });
    if (line == panel.lines.end())
      line = panel.lines.insert(line, {.name = level, .group = level, .marks_only = true, .shows_labels = true});
    line->x.push_back(kSecondsPerMs * *point->time_ms);
    line->y.push_back(*height_of(*point));
    line->labels.push_back(point->precision);
  }
  if (auto line = frontier(drawn, height_of, scored); line.x.size() > 1) panel.lines.push_back(std::move(line));
  return {.id = "frontier",
          .title = "Score or error against time",
          .panels = {std::move(panel)},
          .note =
              "Each mark is a level in a precision; to the left is faster. The dashed line joins those that no other "
              "beats in both.",
          .table = accuracy_table(group)};
}

}  // namespace

std::vector<document::Document> accuracy_parts(const analysis::RunResult& run) {
  std::vector<document::Document> parts;
  for (const auto& group : run.accuracy) {
    document::Section section{.id = "accuracy"};
    for (auto& sentence : score_sentences(group)) section.items.push_back(std::move(sentence));
    section.items.push_back(accuracy_figure(group));
    parts.push_back({.title = "Accuracy against speed, " + group.id, .sections = {std::move(section)}});
  }
  return parts;
}

}  // namespace strata::report
