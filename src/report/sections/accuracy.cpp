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
std::string error_words(const Json& point) {
  const auto error = number(point, "error");
  return error ? fmt::format("{:.1e}", *error) : "";
}

std::string score_difference(const Json& point) {
  const auto value = number(point, "eval.difference.value"), low = number(point, "eval.difference.low"),
             high = number(point, "eval.difference.high");
  if (!value || flag(point, "reference")) return "";
  return low && high ? fmt::format("{} ({} to {})", change(*value), change(*low), change(*high)) : change(*value);
}

// "4 of 10,000"; "" where it is not known.
std::string of_count(const Json& point, const char* part, const char* whole) {
  const auto differ = number(point, part), all = number(point, whole);
  return differ && all && *all > 0 ? fmt::format("{} of {}", count(*differ), count(*all)) : "";
}

document::Cell speedup_of_point(const Json& point) {
  if (flag(point, "reference")) return "reference";
  auto cell = estimate_cell(at(point, "ratio"), document::Format::ratio);
  if (auto* speedup = std::get_if<document::Number>(&cell); speedup && !flag(point, "ratio.together"))
    speedup->mark = "*";
  return cell;
}

std::string sentence_of_score(const Json& point, const std::string& reference) {
  std::string out = fmt::format("{} in {}: ", level_name(point), text(point, "precision"));
  if (const auto faster = number(point, "ratio.value")) out += fmt::format("{} times as fast, ", ratio(*faster));
  const auto value = number(point, "eval.difference.value"), low = number(point, "eval.difference.low"),
             high = number(point, "eval.difference.high");
  out += fmt::format("score {} against {}", value && *value == 0 ? "+0" : change(value.value_or(0)), reference);
  if (low && high) out += fmt::format(" (99%: {} to {})", change(*low), change(*high));
  if (const auto differ = of_count(point, "eval.differ", "eval.count"); !differ.empty())
    out += fmt::format(", {} answers differ", differ);
  return out;
}

// "fp32, bf16": the modes whose case was measured beside other programs.
std::string unreliable_modes(const Json& points) {
  std::vector<std::string> modes;
  for (const auto& point : points)
    if (at(point, "reliable") == false &&
        std::find(modes.begin(), modes.end(), text(point, "precision")) == modes.end())
      modes.push_back(text(point, "precision"));
  return fmt::format("{}", fmt::join(modes, ", "));
}

bool is_scored(const Json& points) {
  return std::any_of(points.begin(), points.end(), [](const Json& point) { return at(point, "eval").is_object(); });
}

std::string note_of(const Json& group) {
  std::string note = at(group, "reference").is_object()
                         ? fmt::format("Reference: {} in fp32.", text(group, "reference.level"))
                         : "No reference: this run has no number for it in fp32.";
  note += " Error: relative, against float64.";
  if (const auto modes = unreliable_modes(list(group, "points")); !modes.empty())
    note += fmt::format(
        " The times in {} are not reliable and not compared: other programs had the cores while they were measured.",
        modes);
  if (flag(group, "measured_apart"))
    note +=
        " * Modes were measured one after the other: the machine's drift between them is not cancelled, the interval "
        "holds the process effect.";
  return note;
}

document::Table accuracy_table(const Json& group) {
  const auto& points = list(group, "points");
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
    std::vector<document::Cell> cells{level_name(point),
                                      text(point, "precision"),
                                      time_cell(point, "time_ms"),
                                      speedup_of_point(point),
                                      word_or_absent(error_words(point)),
                                      word_or_absent(of_count(point, "differ", "answers"))};
    if (scored) {
      const bool reference = flag(point, "reference");
      cells.push_back(value_cell(point, "eval.score", document::Format::digits));
      cells.push_back(word_or_absent(score_difference(point)));
      cells.push_back(word_or_absent(reference ? "" : of_count(point, "eval.differ", "eval.count")));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// A sentence for each level with a score, and for each that has none why.
std::vector<document::Text> score_sentences(const Json& group) {
  std::vector<document::Text> sentences;
  for (const auto& point : list(group, "points")) {
    const auto state = text(point, "eval.state");
    if (number(point, "eval.score") && !flag(point, "reference") && number(point, "eval.difference.value"))
      sentences.push_back({sentence_of_score(point, text(group, "reference.level"))});
    if (!number(point, "eval.score") && !state.empty() && state != "scored")
      sentences.push_back({fmt::format("{} in {}: {}: {}", level_name(point), text(point, "precision"), state,
                                       first_sentence(text(point, "eval.reason")))});
  }
  return sentences;
}

// Those that no other beats in time and in score (or error) together; times that others spoilt beat nothing. The line
// goes along first, then up or down.
document::Line frontier(std::vector<const Json*> points, const char* path, bool more_is_better) {
  document::Line line{.name = "frontier", .dashed = true};
  std::erase_if(points, [](const Json* point) { return at(*point, "reliable") == false; });
  std::stable_sort(points.begin(), points.end(),
                   [](const Json* a, const Json* b) { return number(*a, "time_ms") < number(*b, "time_ms"); });
  for (const Json* point : points) {
    const double x = kSecondsPerMs * number(*point, "time_ms").value_or(0), y = number(*point, path).value_or(0);
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

document::Figure accuracy_figure(const Json& group) {
  const auto& points = list(group, "points");
  const bool scored =
      std::any_of(points.begin(), points.end(), [](const Json& point) { return number(point, "eval.score"); });
  const char* path = scored ? "eval.score" : "error";
  document::Panel panel{.x = {.title = "time of one iteration", .format = document::Format::seconds},
                        .y = {.title = scored ? "score" : "error against float64", .logarithmic = !scored}};
  std::vector<const Json*> drawn;
  for (const auto& point : points)
    if (const auto y = number(point, path); y && number(point, "time_ms") && (scored || *y > 0))
      drawn.push_back(&point);
  for (const Json* point : drawn) {
    const auto level = level_name(*point);
    auto line =
        std::find_if(panel.lines.begin(), panel.lines.end(), [&](const auto& other) { return other.name == level; });
    if (line == panel.lines.end())
      line = panel.lines.insert(line, {.name = level, .group = level, .marks_only = true, .shows_labels = true});
    line->x.push_back(kSecondsPerMs * *number(*point, "time_ms"));
    line->y.push_back(*number(*point, path));
    line->labels.push_back(text(*point, "precision"));
  }
  if (auto line = frontier(drawn, path, scored); line.x.size() > 1) panel.lines.push_back(std::move(line));
  return {.id = "frontier",
          .title = "Score or error against time",
          .panels = {std::move(panel)},
          .note =
              "Each mark is a level in a precision; to the left is faster. The dashed line joins those that no other "
              "beats in both.",
          .table = accuracy_table(group)};
}

}  // namespace

std::vector<document::Document> accuracy_parts(const Json& run) {
  std::vector<document::Document> parts;
  for (const auto& group : list(run, "accuracy")) {
    document::Section section{.id = "accuracy"};
    for (auto& sentence : score_sentences(group)) section.items.push_back(std::move(sentence));
    section.items.push_back(accuracy_figure(group));
    parts.push_back({.title = "Accuracy against speed, " + text(group, "id"), .sections = {std::move(section)}});
  }
  return parts;
}

}  // namespace strata::report
