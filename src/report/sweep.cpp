// SPDX-License-Identifier: Apache-2.0
#include "report/sweep.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/surface.hpp"
#include "common/text.hpp"
#include "report/access.hpp"
#include "report/best_batch.hpp"
#include "report/format.hpp"
#include "report/run_facts.hpp"

namespace strata::report {
namespace {

using analysis::CellLevel;
using analysis::Grid;
using analysis::GridAxis;
using analysis::GridCell;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kTie = 0.1;  // levels that all lie within so much of each other are called a tie

// The grid as maps: rows and columns are two of its axes (or fewer), and each combination of the others is a map.
struct Layout {
  std::optional<std::size_t> rows, columns;    // places in grid.axes
  std::vector<std::vector<std::string>> maps;  // values of the other axes, in their order
  std::vector<std::size_t> others;
};

std::optional<std::size_t> axis_called(const Grid& grid, const char* name) {
  for (std::size_t i = 0; i < grid.axes.size(); ++i)
    if (grid.axes[i].name == name) return i;
  return std::nullopt;
}

Layout layout_of(const Grid& grid) {
  Layout layout;
  layout.columns = axis_called(grid, "batch");
  layout.rows = axis_called(grid, "size");
  for (std::size_t i = 0; i < grid.axes.size(); ++i) {
    if (i == layout.columns || i == layout.rows) continue;
    if (!layout.columns)
      layout.columns = i;
    else if (!layout.rows)
      layout.rows = i;
    else
      layout.others.push_back(i);
  }
  std::set<std::vector<std::string>> seen;
  for (const auto& cell : grid.cells) {
    std::vector<std::string> map;
    for (const auto i : layout.others) map.push_back(cell.at[i]);
    if (seen.insert(map).second) layout.maps.push_back(map);
  }
  return layout;
}

std::string words_of(const Grid& grid, const Layout& layout, const std::vector<std::string>& map) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < map.size(); ++i)
    words.push_back(fmt::format("{} {}", grid.axes[layout.others[i]].name, map[i]));
  return fmt::format("{}", fmt::join(words, ", "));
}

const GridCell* cell_at(const Grid& grid, const Layout& layout, const std::vector<std::string>& map, std::size_t row,
                        std::size_t column) {
  std::vector<std::string> at(grid.axes.size());
  for (std::size_t i = 0; i < map.size(); ++i) at[layout.others[i]] = map[i];
  if (layout.rows) at[*layout.rows] = grid.axes[*layout.rows].values[row];
  if (layout.columns) at[*layout.columns] = grid.axes[*layout.columns].values[column];
  return grid.find(at);
}

// A heat map with the grid's rows and columns and nothing in it.
document::HeatMap empty_map(const Grid& grid, const Layout& layout) {
  document::HeatMap map;
  const auto fill = [&](const std::optional<std::size_t>& axis, std::string& title, std::vector<std::string>& names) {
    if (axis) {
      title = grid.axes[*axis].name;
      names = grid.axes[*axis].values;
    } else {
      names = {"all"};
    }
  };
  fill(layout.rows, map.row_title, map.rows);
  fill(layout.columns, map.column_title, map.columns);
  map.values.assign(map.rows.size(), std::vector<double>(map.columns.size(), kNone));
  map.labels.assign(map.rows.size(), std::vector<std::string>(map.columns.size()));
  return map;
}

std::string why_empty(const GridCell& cell) {
  if (!cell.reliable) return "not reliable";
  std::set<std::string> states;
  for (const auto& [name, level] : cell.levels) states.insert(level.state);
  std::string state = states.size() == 1 ? *states.begin() : "no level";
  std::replace(state.begin(), state.end(), '_', ' ');
  return state;
}

// "static"; "tie within 3%: eager, static"; "eager, onednn or static"; why there is none.
std::string best_words(const GridCell& cell) {
  if (cell.best.empty()) return why_empty(cell);
  if (cell.best.size() == 1) return cell.best.front();
  if (cell.tie_within <= kTie)
    return fmt::format("tie within {:.0f}%: {}", std::ceil(100 * cell.tie_within), fmt::join(cell.best, ", "));
  return fmt::format("{}", fmt::join(cell.best, " or "));
}

document::Section winners(const Grid& grid, const Layout& layout) {
  document::Section section{"fastest", "Fastest level", {}};
  std::vector<std::string> names;  // that a map colours
  for (const auto& level : grid.levels)
    if (std::any_of(grid.cells.begin(), grid.cells.end(),
                    [&](const GridCell& cell) { return cell.best.size() == 1 && cell.best.front() == level; }))
      names.push_back(level);
  std::size_t number = 0;
  for (const auto& combination : layout.maps) {
    auto map = empty_map(grid, layout);
    map.id = fmt::format("fastest{}", ++number);
    const auto words = words_of(grid, layout, combination);
    map.title = words.empty() ? "Who is the fastest" : "Who is the fastest: " + words;
    map.scale.title = "level";
    map.scale.categories = names;
    for (std::size_t r = 0; r < map.rows.size(); ++r)
      for (std::size_t c = 0; c < map.columns.size(); ++c) {
        const auto* cell = cell_at(grid, layout, combination, r, c);
        map.labels[r][c] = cell ? best_words(*cell) : "not reached";
        if (!cell || cell->best.size() != 1) continue;
        const auto found = std::find(names.begin(), names.end(), cell->best.front());
        map.values[r][c] = static_cast<double>(found - names.begin());
      }
    map.note =
        "A field has a colour where every other level is excluded as the fastest, with 99% for all comparisons of the "
        "field together (multiple comparisons with the best). Else it names those that are not excluded; a tie where "
        "all of them lie within 10% of each other by their 99% intervals.";
    section.items.push_back(std::move(map));
  }
  return section;
}

// Time of a sample along the columns' axis, a panel a row.
document::Section lines(const Grid& grid, const Layout& layout) {
  document::Section section{"times", "Time of a sample", {}};
  if (!layout.columns) return section;
  const auto& axis = grid.axes[*layout.columns];
  std::vector<double> places;
  for (const auto& value : axis.values) places.push_back(strata::number<double>(value).value_or(kNone));
  const bool numbers = std::all_of(places.begin(), places.end(), [](double value) { return std::isfinite(value); });
  std::size_t count = 0;
  for (const auto& combination : layout.maps) {
    document::Figure figure{fmt::format("times{}", ++count), words_of(grid, layout, combination), {}, ""};
    if (figure.title.empty()) figure.title = fmt::format("Against {}", axis.name);
    const std::size_t rows = layout.rows ? grid.axes[*layout.rows].values.size() : 1;
    for (std::size_t r = 0; r < rows; ++r) {
      document::Panel panel;
      if (layout.rows)
        panel.title = fmt::format("{} {}", grid.axes[*layout.rows].name, grid.axes[*layout.rows].values[r]);
      panel.x = {axis.name, "", numbers};
      if (!numbers) panel.x.categories = axis.values;
      panel.y = {"time of a sample", "", true, document::Format::seconds};
      for (const auto& name : grid.levels) {
        document::Line line;
        line.name = line.group = name;
        for (std::size_t c = 0; c < axis.values.size(); ++c) {
          const auto* cell = cell_at(grid, layout, combination, r, c);
          const auto level = cell ? cell->levels.find(name) : std::map<std::string, CellLevel>::const_iterator();
          if (!cell || level == cell->levels.end() || !level->second.sample_ms) continue;
          line.x.push_back(numbers ? places[c] : static_cast<double>(c));
          line.y.push_back(*level->second.sample_ms * 1e-3);
        }
        if (!line.x.empty()) panel.lines.push_back(std::move(line));
      }
      figure.panels.push_back(std::move(panel));
    }
    section.items.push_back(std::move(figure));
  }
  return section;
}

document::Section speedups(const Grid& grid, const Layout& layout) {
  document::Section section{"speedups", fmt::format("Speedup over {}", grid.reference), {}};
  std::size_t count = 0;
  for (const auto& name : grid.levels) {
    if (name == grid.reference) continue;
    for (const auto& combination : layout.maps) {
      auto map = empty_map(grid, layout);
      map.id = fmt::format("speedup{}", ++count);
      const auto words = words_of(grid, layout, combination);
      map.title = words.empty() ? name : name + ": " + words;
      map.scale = {fmt::format("times as fast as {}", grid.reference), "", true, document::Format::ratio};
      map.middle = 1;
      for (std::size_t r = 0; r < map.rows.size(); ++r)
        for (std::size_t c = 0; c < map.columns.size(); ++c) {
          const auto* cell = cell_at(grid, layout, combination, r, c);
          if (!cell) continue;
          const auto level = cell->levels.find(name);
          if (level == cell->levels.end()) continue;
          const auto& speedup = level->second.speedup;
          if (!std::isfinite(speedup.value)) {
            map.labels[r][c] = level->second.state == "measured" ? "–" : level->second.state;
            std::replace(map.labels[r][c].begin(), map.labels[r][c].end(), '_', ' ');
            continue;
          }
          map.values[r][c] = speedup.value;
          const bool resolved = level->second.direction == stats::Direction::faster ||
                                level->second.direction == stats::Direction::slower;
          map.labels[r][c] = fmt::format(fmt::runtime(resolved ? "{:.2f}" : "({:.2f})"), speedup.value);
        }
      map.note = "In brackets: a speedup whose 99% interval does not exclude 1.";
      section.items.push_back(std::move(map));
    }
  }
  return section;
}

document::Section everything(const Grid& grid) {
  document::Table table{"points", "Every point", {}, {}, {}};
  table.columns.push_back({"point", "point", "", document::Align::left});
  for (const auto& axis : grid.axes) table.columns.push_back({axis.name, axis.name, ""});
  table.columns.insert(table.columns.end(), {{"level", "level", "", document::Align::left},
                                             {"state", "state", "", document::Align::left},
                                             {"sample_time", "time of a sample", ""},
                                             {"speedup", "speedup", ""},
                                             {"peak_memory", "peak memory", ""},
                                             {"reason", "why", "", document::Align::left}});
  for (const auto& cell : grid.cells)
    for (const auto& name : grid.levels) {
      const auto found = cell.levels.find(name);
      if (found == cell.levels.end()) continue;
      const auto& level = found->second;
      std::vector<document::Cell> row{cell.one->id};
      for (const auto& value : cell.at) row.emplace_back(value);
      row.emplace_back(name);
      row.emplace_back(level.state);
      row.push_back(level.sample_ms
                        ? document::Cell{document::Number{*level.sample_ms * 1e-3, document::Format::seconds}}
                        : document::Cell{document::Absent{}});
      document::Number speedup{level.speedup.value, document::Format::ratio, level.speedup.low, level.speedup.high};
      const bool bounded = std::isfinite(level.speedup.low) && std::isfinite(level.speedup.high);
      if (!bounded) speedup.low = speedup.high = std::nullopt;
      row.push_back(std::isfinite(level.speedup.value) ? document::Cell{speedup} : document::Cell{document::Absent{}});
      row.push_back(level.peak_bytes
                        ? document::Cell{document::Number{*level.peak_bytes, document::Format::bytes}}
                        : document::Cell{document::Absent{
                              level.expected_bytes ? "foreseen: " + size(*level.expected_bytes) : std::string()}});
      row.emplace_back(level.reason);
      table.rows.push_back(std::move(row));
    }
  table.note = fmt::format(
      "Speedup over {}, with its 99% interval. Memory is that of a level alone; where it was not measured, it is "
      "foreseen from the other points.",
      grid.reference);
  return {"points", "Points", {table}};
}

// How far the reference is behind the fastest, by the estimates.
struct Behind {
  std::size_t cells = 0, within = 0, far = 0;
};
Behind behind_of(const Grid& grid) {
  Behind all;
  for (const auto& cell : grid.cells) {
    const auto own = cell.levels.find(grid.reference);
    if (own == cell.levels.end() || !own->second.sample_ms || !cell.reliable) continue;
    double least = *own->second.sample_ms;
    for (const auto& [name, level] : cell.levels)
      if (level.sample_ms) least = std::min(least, *level.sample_ms);
    ++all.cells;
    all.within += *own->second.sample_ms <= 1.1 * least;
    all.far += *own->second.sample_ms > 2 * least;
  }
  return all;
}

std::string summary_of(const Grid& grid) {
  std::size_t told = 0;  // cells in which anything was measured
  std::map<std::string, std::size_t> alone, possible;
  for (const auto& cell : grid.cells) {
    told += !cell.best.empty();
    for (const auto& name : cell.best) ++possible[name];
    if (cell.best.size() == 1) ++alone[cell.best.front()];
  }
  if (told == 0) return "No point has a result that can be told.";
  std::vector<std::string> sentences;
  for (const auto& level : grid.levels) {
    if (possible[level] == 0) continue;
    if (alone[level] == told)
      sentences.push_back(fmt::format("{} is the fastest in every one of {} points", level, told));
    else if (alone[level] > 0)
      sentences.push_back(fmt::format("{} is the fastest in {} of {} points{}", level, alone[level], told,
                                      possible[level] > alone[level]
                                          ? fmt::format(" and may be in {} more", possible[level] - alone[level])
                                          : std::string()));
  }
  if (sentences.empty()) sentences.push_back(fmt::format("in none of {} points is one level alone the fastest", told));
  if (const auto behind = behind_of(grid); behind.cells > 0)
    sentences.push_back(
        fmt::format("{} is within 10% of the fastest in {} of {} points, and more than 100% behind in {}",
                    grid.reference, behind.within, behind.cells, behind.far));
  auto text = fmt::format("{}.", fmt::join(sentences, "; "));
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string axes_words(const Grid& grid) {
  std::vector<std::string> words;
  for (const auto& axis : grid.axes) words.push_back(fmt::format("{} {}", axis.name, fmt::join(axis.values, ", ")));
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace

bool is_sweep(const store::Run& run) {
  return text(run.settings, "verb") == "sweep";
}

document::Document sweep_document(const store::Run& run) {
  const auto grid = analysis::grid_of(run);
  const auto layout = layout_of(grid);
  document::Document out;
  out.title = "strata sweep: " + (run.cases.empty() ? std::string("no point") : run.cases.front().question.model);
  out.subtitle = axes_words(grid);
  out.summary = summary_of(grid);
  if (auto batch = best_batch(run); !batch.items.empty()) {
    out.summary = best_batch_words(run);
    out.sections.push_back(std::move(batch));
  }
  auto& first = out.sections.emplace_back(winners(grid, layout));
  const auto without = std::count_if(run.warnings.begin(), run.warnings.end(),
                                     [](const store::Warning& warning) { return warning.id == "W009"; });
  const auto reached = static_cast<double>(run.cases.size()) + static_cast<double>(without);
  if (const auto planned = number(run.settings, "cases"); planned && *planned > reached)
    first.items.push_back(document::Text{
        fmt::format("{:.0f} of {:.0f} points were reached; ./strata resume {} goes on", reached, *planned, run.run_id),
        document::Text::Kind::warning});
  for (const auto& warning : run.warnings)
    if (warning.case_key.empty())
      first.items.push_back(document::Text{fmt::format("{}: {}. {}", warning.id, warning.what, warning.advice),
                                           document::Text::Kind::warning});
  for (auto& section : {lines(grid, layout), speedups(grid, layout)})
    if (!section.items.empty()) out.sections.push_back(section);
  out.sections.push_back(everything(grid));
  out.facts = run_facts(run);
  return out;
}

}  // namespace strata::report
