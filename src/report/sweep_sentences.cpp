// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "report/sweep_sections.hpp"

namespace strata::report {
namespace {

using analysis::Crossing;
using analysis::Grid;
using analysis::Stretch;
constexpr std::size_t kMostCrossings = 2;  // in the summary
constexpr std::size_t kMostPlaces = 2;     // that a crossing of the summary names

// "up to batch 8", "from size 64 on", "of mode infer".
std::string stretch_words(const Grid& grid, const Stretch& stretch) {
  const auto& axis = grid.axes[*stretch.axis];
  if (stretch.first == stretch.last) return fmt::format("of {} {}", axis.name, axis.values[stretch.first]);
  return stretch.first == 0 ? fmt::format("up to {} {}", axis.name, axis.values[stretch.last])
                            : fmt::format("from {} {} on", axis.name, axis.values[stretch.first]);
}

std::string listed(const std::vector<std::string>& words) {
  if (words.size() < 2) return fmt::format("{}", fmt::join(words, ""));
  return fmt::format("{} and {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

// Of one level, "" where it is nowhere alone the fastest.
std::string fastest_words(const Grid& grid, const analysis::Standing& standing, const std::vector<Stretch>& stretches,
                          std::size_t decided) {
  const auto& level = standing.level;
  if (standing.alone == 0) return {};
  if (standing.alone == decided) return fmt::format("{} is the fastest in every one of {} points", level, decided);
  const auto more = standing.open > 0 ? fmt::format(" and may be in {} more", standing.open) : std::string();
  std::vector<std::string> words;
  for (const auto& stretch : stretches)
    if (stretch.level == level && stretch.axis) words.push_back(stretch_words(grid, stretch));
  if (words.empty()) return fmt::format("{} is the fastest in {} of {} points{}", level, standing.alone, decided, more);
  return fmt::format("{} is the fastest at every point {} ({} of {} points{})", level, listed(words), standing.alone,
                     decided, more);
}

// "size 64, mode infer": the line of a crossing; "" where the grid has one axis.
std::string line_words(const Grid& grid, const Crossing& crossing) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < crossing.at.size(); ++i)
    if (i != crossing.axis) words.push_back(fmt::format("{} {}", grid.axes[i].name, crossing.at[i]));
  return fmt::format("{}", fmt::join(words, ", "));
}

// Crossings of the fastest, those of the same two levels between the same two values together.
std::vector<std::string> crossing_sentences(const Grid& grid) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // sentence, lines
  for (const auto& crossing : analysis::crossings_of(grid)) {
    if (!crossing.of_the_fastest) continue;
    const auto sentence = fmt::format("the crossing from {} to {} lies between {} {} and {}", crossing.before,
                                      crossing.after, grid.axes[crossing.axis].name, crossing.from, crossing.to);
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& other) { return other.first == sentence; });
    if (group == groups.end())
      groups.push_back({sentence, {line_words(grid, crossing)}});
    else
      group->second.push_back(line_words(grid, crossing));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::vector<std::string> sentences;
  for (const auto& [sentence, lines] : groups) {
    if (sentences.size() == kMostCrossings) {
      sentences.push_back(fmt::format("other crossings are in the table ({})", groups.size() - kMostCrossings));
      break;
    }
    if (lines.front().empty())
      sentences.push_back(sentence);
    else if (lines.size() <= kMostPlaces)
      sentences.push_back(fmt::format("{} ({})", sentence, fmt::join(lines, "; ")));
    else
      sentences.push_back(fmt::format("{} ({} and {} more lines)", sentence, lines.front(), lines.size() - 1));
  }
  return sentences;
}

// "eager is within 10% of the fastest in 3 of 36 points, more than 100% behind in 20 and in between in 8; ..."
std::string behind_words(const analysis::Standing& own) {
  auto words = fmt::format("{} is within 10% of the fastest in {} of {} points and more than 100% behind in {}",
                           own.level, own.within, own.points, own.far);
  if (own.between > 0) words += fmt::format(", in between in {}", own.between);
  if (own.unknown > 0) words += fmt::format("; in {} the intervals cannot tell", own.unknown);
  return words;
}

document::Number count_of(std::size_t value) {
  return {.value = static_cast<double>(value), .format = document::NumberFormat::count};
}

}  // namespace

std::string sweep_summary(const Grid& grid) {
  const auto decided = static_cast<std::size_t>(
      std::count_if(grid.cells.begin(), grid.cells.end(), [](const auto& cell) { return !cell.best.empty(); }));
  const auto in_vain =
      std::count_if(grid.cells.begin(), grid.cells.end(), [](const auto& cell) { return !cell.reliable; });
  const auto unreliable = fmt::format(
      "Not reliable at {} of {} points: other programs had the processors; sweep on an "
      "idle machine.",
      in_vain, grid.cells.size());
  if (decided == 0) return in_vain > 0 ? unreliable : "No point has a result that can be told.";
  const auto standings = analysis::standings_of(grid);
  const auto stretches = analysis::stretches_of(grid);
  std::vector<std::string> sentences;
  for (const auto& standing : standings)
    if (auto words = fastest_words(grid, standing, stretches, decided); !words.empty())
      sentences.push_back(std::move(words));
  if (sentences.empty())
    sentences.push_back(fmt::format("in none of {} points is one level alone the fastest", decided));
  for (auto& sentence : crossing_sentences(grid)) sentences.push_back(std::move(sentence));
  for (const auto& standing : standings)
    if (standing.level == grid.reference && standing.points > 0 && standings.size() > 1)
      sentences.push_back(behind_words(standing));
  std::string text;
  for (auto& sentence : sentences) {
    sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence[0])));
    text += (text.empty() ? "" : " ") + sentence + ".";
  }
  return in_vain > 0 ? text + " " + unreliable : text;
}

std::string sweep_error_rates() {
  return "What is said of several points holds for all of them at once: a sentence about every point up to or from a "
         "value, or about a crossing on one line, is wrong in at most 1 of 100 sweeps. Each point by itself is judged "
         "with 99%: "
         "of 100 points that are counted, 1 may be wrong. What the intervals leave open is counted apart.";
}

document::Table standings_table(const Grid& grid) {
  document::Table table{.id = "standings", .title = "How far behind the fastest"};
  table.columns = {{.id = "level", .title = "level", .align = document::Align::left},
                   {.id = "points", .title = "points"},
                   {.id = "alone", .title = "alone the fastest"},
                   {.id = "open", .title = "may be the fastest"},
                   {.id = "within", .title = "within 10%"},
                   {.id = "between", .title = "10 to 100% behind"},
                   {.id = "far", .title = "over 100% behind"},
                   {.id = "unknown", .title = "cannot tell"},
                   {.id = "without", .title = "no number"}};
  for (const auto& own : analysis::standings_of(grid))
    table.rows.push_back({own.level, count_of(own.points), count_of(own.alone), count_of(own.open),
                          count_of(own.within), count_of(own.between), count_of(own.far), count_of(own.unknown),
                          count_of(own.without)});
  table.note =
      "Of the points at which a level has a number: whether the intervals of all other levels over it, which hold at "
      "once with 99%, end below 10%, begin above 100%, or lie between the two. Else nobody can tell.";
  return table;
}

document::Table crossings_table(const Grid& grid) {
  document::Table table{.id = "crossings", .title = "Where one level takes over from another"};
  const bool one_line = grid.axes.size() < 2;
  if (!one_line) table.columns.push_back({.id = "line", .title = "on the line", .align = document::Align::left});
  table.columns.insert(table.columns.end(),
                       {{.id = "axis", .title = "along", .align = document::Align::left},
                        {.id = "before", .title = "ahead", .align = document::Align::left},
                        {.id = "from", .title = "up to"},
                        {.id = "after", .title = "then ahead", .align = document::Align::left},
                        {.id = "to", .title = "from"},
                        {.id = "fastest", .title = "of the fastest", .align = document::Align::left}});
  for (const auto& crossing : analysis::crossings_of(grid)) {
    std::vector<document::Cell> row;
    if (!one_line) row.emplace_back(line_words(grid, crossing));
    for (const auto& text :
         {grid.axes[crossing.axis].name, crossing.before, crossing.from, crossing.after, crossing.to})
      row.emplace_back(text);
    row.emplace_back(crossing.of_the_fastest ? "yes" : "no");
    table.rows.push_back(std::move(row));
  }
  table.note =
      "By intervals that hold for all points of a line and two levels at once (99%, Bonferroni). Between the two "
      "values "
      "nobody can tell. Levels that are not in it do not cross there, or not so that the intervals show it. Of the "
      "fastest: each of the two may be the fastest of all where it is ahead.";
  return table;
}

}  // namespace strata::report
