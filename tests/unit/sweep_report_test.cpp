// SPDX-License-Identifier: Apache-2.0
// What a sweep's report says and draws, of made-up grids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "report/render/render.hpp"
#include "report/run_documents.hpp"
#include "report/sweep_sections.hpp"
#include "unit/made_grid.hpp"

namespace strata::report {
namespace {

using analysis::Grid;
using analysis::GridAxis;
using analysis::Places;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const GridAxis kBatch{"batch", {"1", "8", "64"}}, kSize{"size", {"32", "64"}}, kMode{"mode", {"infer", "train"}};

// Times and memory of every level, and with them speedups over the first.
void fill_numbers(Grid& grid, double half_width) {
  for (auto& cell : grid.cells) {
    cell.batch = std::stod(cell.at[0]);
    for (auto& [name, level] : cell.levels) {
      if (level.state != State::measured) continue;
      const auto* over = cell.compared(grid.reference, name);
      const double lead = over ? over->log_ratio.value : 0, ms = 2 * std::sqrt(cell.batch) * std::exp(-lead);
      level.iteration_ms = {ms, ms * std::exp(-half_width), ms * std::exp(half_width)};
      level.speedup = {std::exp(lead), std::exp(lead - half_width), std::exp(lead + half_width)};
      level.direction = name == grid.reference || std::abs(lead) < half_width ? stats::Direction::inconclusive
                        : lead > 0                                            ? stats::Direction::faster
                                                                              : stats::Direction::slower;
      level.peak_bytes = 1e8 + 4e6 * cell.batch * (name == "b" ? 2 : 1);
    }
  }
}

// "b" leads at small batches and "a" at the largest; in training they are equal at batch 8. "c" is far behind, and runs
// out of memory at the last point.
Grid example_grid() {
  auto grid = analysis::made_grid({kBatch, kSize, kMode}, {"a", "b", "c"},
                                  analysis::by_times(
                                      [](const Places& at, std::size_t level) {
                                        if (level == 2) return 1.5;
                                        if (level == 0) return 0.0;
                                        return at[0] == 0 ? -0.8 : at[0] == 2 ? 0.3 : at[2] == 1 ? 0.01 : -0.05;
                                      },
                                      0.04));
  grid.cells.back().levels.at("c") = {.state = State::out_of_memory};
  fill_numbers(grid, 0.04);
  return grid;
}

TEST(SweepSummary, says_stretches_crossings_and_how_far_behind_the_reference_is) {
  auto grid = analysis::made_grid({kBatch}, {"a", "b"},
                                  analysis::by_times(
                                      [](const Places& at, std::size_t level) {
                                        const double lead[] = {0.8, 0.042, -0.3};
                                        return level == 1 ? -lead[at[0]] : 0.0;
                                      },
                                      0.04));
  EXPECT_EQ(
      sweep_summary(grid),
      "A is the fastest at every point of batch 64 (1 of 3 points). B is the fastest at every point up to batch 8 "
      "(2 of 3 points). The crossing from b to a lies between batch 1 and 64. A is within 10% of the fastest in 2 "
      "of 3 points and more than 100% behind in 1.");
}

TEST(SweepSummary, claims_nothing_where_the_intervals_tell_nothing) {
  const auto grid = analysis::made_grid(
      {kBatch}, {"a", "b"},
      analysis::by_times([](const Places&, std::size_t level) { return 0.1 * static_cast<double>(level); }, 0.3));
  EXPECT_EQ(sweep_summary(grid),
            "In none of 3 points is one level alone the fastest. A is within 10% of the fastest in 0 of 3 points and "
            "more than 100% behind in 0; in 3 the intervals cannot tell.");
  EXPECT_THAT(crossings_table(grid).rows, IsEmpty());
  EXPECT_EQ(sweep_summary(Grid{}), "No point has a result that can be told.");
}

TEST(SweepSummary, names_no_more_than_two_crossings_and_says_how_many_more_there_are) {
  const GridAxis size{"size", {"8", "16", "32", "64", "128"}};
  const GridAxis batch{"batch", {"1", "2", "4", "8", "16", "32"}};
  const auto grid = analysis::made_grid(
      {batch, size}, {"a", "b"},
      analysis::by_times(
          [](const Places& at, std::size_t level) { return level == (at[0] > at[1] ? 1U : 0U) ? 0.0 : 0.4; }, 0.04));
  const auto summary = sweep_summary(grid);
  EXPECT_THAT(summary, HasSubstr("The crossing from a to b lies between batch 1 and 2 (size 8)."));
  EXPECT_THAT(summary, HasSubstr("Other crossings are in the table (7)."));
  EXPECT_EQ(crossings_table(grid).rows.size(), 9U);  // five along batch, four along size
}

TEST(SweepFigures, third_axes_are_choices_and_each_quantity_is_a_surface_with_its_outcomes) {
  const auto grid = example_grid();
  const SweepLayout layout(grid);
  EXPECT_THAT(layout.maps(), ElementsAre(ElementsAre("infer"), ElementsAre("train")));
  const auto winners = sweep_winners(grid, layout);
  ASSERT_EQ(winners.size(), 2U);
  EXPECT_EQ(winners[1].choices[0].title + " " + winners[1].choices[0].option, "mode train");
  EXPECT_EQ(winners[1].labels[0][1], "tie within 6%: a, b");
  const auto surfaces = sweep_surfaces(grid, layout);
  ASSERT_EQ(surfaces.items.size(), 12U);  // six quantities in two modes
  std::vector<std::string> shown;
  for (const auto& item : surfaces.items) {
    const auto& surface = std::get<document::Surface>(item);
    shown.push_back(surface.choices[0].option + ", " + surface.choices[1].option);
    EXPECT_EQ(surface.is_detail, shown.size() > 2);
  }
  EXPECT_EQ(shown[0], "speedup over a, infer");
  EXPECT_EQ(shown[1], "speedup over a, train");
  EXPECT_EQ(shown[11], "memory over a, train");
  const auto& speedup = std::get<document::Surface>(surfaces.items[1]);
  ASSERT_EQ(speedup.layers.size(), 2U);  // of all but the reference
  EXPECT_EQ(speedup.layers[0].fields[0][0].outcome, "faster than a, the fastest");
  EXPECT_EQ(speedup.layers[0].fields[0][1].label, "(0.99)");
  EXPECT_EQ(speedup.layers[0].fields[0][1].outcome, "inconclusive against a, may be the fastest");
  EXPECT_EQ(speedup.layers[1].fields[1][2].outcome, "out of memory");
  EXPECT_FALSE(std::isfinite(speedup.layers[1].fields[1][2].number.value));
  const auto& throughput = std::get<document::Surface>(surfaces.items[6]);
  const auto& field = throughput.layers[0].fields[0][1].number;  // a: 8 samples in 2 sqrt(8) ms
  EXPECT_NEAR(field.value, 8 / (2e-3 * std::sqrt(8)), 1e-6);
  EXPECT_LT(*field.low, field.value);
  EXPECT_GT(*field.high, field.value);
}

TEST(SweepFigures, point_that_was_not_reached_says_so) {
  auto grid = example_grid();
  grid.cells.erase(grid.cells.begin());
  const SweepLayout layout(grid);
  const auto surfaces = sweep_surfaces(grid, layout);
  EXPECT_EQ(std::get<document::Surface>(surfaces.items[0]).layers[0].fields[0][0].outcome, "not reached");
}

TEST(SweepReport, a_point_that_is_not_reliable_has_no_rank_no_colour_and_no_place_in_figures) {
  auto grid = example_grid();
  for (auto& cell : grid.cells) {
    cell.reliable = false;
    cell.best.clear();
    cell.comparisons.clear();
    for (auto& [name, level] : cell.levels) level.speedup = {};
  }
  EXPECT_THAT(sweep_summary(grid), ::testing::StartsWith("Not reliable at 12 of 12 points: other programs had the "));
  const SweepLayout layout(grid);
  for (const auto& map : sweep_winners(grid, layout)) {
    EXPECT_THAT(map.scale.categories, IsEmpty());
    for (const auto& row : map.labels)
      for (const auto& label : row) EXPECT_EQ(label, "not reliable");
  }
  for (const auto& item : sweep_lines(grid, layout).items)
    for (const auto& panel : std::get<document::Figure>(item).panels) EXPECT_THAT(panel.lines, IsEmpty());
  for (const auto& item : sweep_surfaces(grid, layout).items) {
    const auto& surface = std::get<document::Surface>(item);
    if (surface.choices.front().option.find("memory") != std::string::npos) continue;  // which nobody takes away
    for (const auto& layer : surface.layers)
      for (const auto& row : layer.fields)
        for (const auto& field : row) {
          EXPECT_TRUE(std::isnan(field.number.value)) << surface.title;
          EXPECT_TRUE(field.outcome == "not reliable" || field.outcome == "out of memory") << field.outcome;
        }
  }
  EXPECT_THAT(sweep_time_and_memory(grid, layout).items, IsEmpty());
}

TEST(SweepReport, that_decided_nothing_is_one_sentence_and_one_table) {
  store::Run run;
  run.run_id = "r", run.finished = "2026-11-21T06:00:00Z";
  run.settings.verb = "sweep";
  const auto document = sweep_document(run);
  ASSERT_EQ(document.sections.size(), 1U);
  EXPECT_EQ(document.sections[0].id, "points");
  EXPECT_EQ(document.summary, "No point has a result that can be told.");
  run.settings.resumed = 1;
  EXPECT_EQ(sweep_document(run).summary, "Resumed once after it was cut off. No point has a result that can be told.");
}

TEST(SweepReport, says_in_every_row_of_its_csv_whether_it_was_cut_off_or_resumed) {
  store::Run run;
  run.run_id = "r", run.finished = "2026-11-21T06:00:00Z", run.interrupted = true;
  run.settings = {.verb = "sweep", .resumed = 2};
  auto document = sweep_document(run);
  document.sections = {{.id = "s", .items = {document::Table{.id = "t", .columns = {{.id = "a"}}, .rows = {{"x"}}}}}};
  EXPECT_EQ(document::render_csv(document), "table,run,run_state,run_resumed,a\nt,r,interrupted,2,x\n");
}

TEST(SweepFront, has_the_points_that_no_other_of_the_same_work_beats_in_both_time_and_memory) {
  const auto grid = example_grid();
  const auto section = sweep_time_and_memory(grid, SweepLayout(grid));
  ASSERT_EQ(section.items.size(), 3U);  // a figure a mode, and the table
  const auto& infer = std::get<document::Figure>(section.items[0]);
  ASSERT_EQ(infer.panels.size(), 2U);
  EXPECT_EQ(infer.panels[0].title, "size 32");
  ASSERT_EQ(infer.panels[0].lines.size(), 4U);
  // a: 2, 0.707, 0.25 ms a sample and 104, 132, 356 MB; b: 0.9, 0.67, 0.34 ms and 108, 164, 612 MB.
  EXPECT_THAT(infer.panels[0].lines[3].labels,
              ElementsAre("a, batch 64", "b, batch 8", "a, batch 8", "b, batch 1", "a, batch 1"));
  EXPECT_TRUE(infer.panels[0].lines[0].marks_only);
  EXPECT_FALSE(infer.panels[0].lines[3].marks_only);
  const auto& front = std::get<document::Table>(section.items[2]);
  EXPECT_EQ(front.columns.size(), 6U);  // size, mode, level, batch, time, memory
}

TEST(SweepFront, is_left_out_where_no_memory_is_known) {
  auto grid = example_grid();
  for (auto& cell : grid.cells)
    for (auto& [name, level] : cell.levels) level.peak_bytes.reset();
  EXPECT_THAT(sweep_time_and_memory(grid, SweepLayout(grid)).items, IsEmpty());
  EXPECT_EQ(sweep_surfaces(grid, SweepLayout(grid)).items.size(), 8U);  // no memory and none over the reference's
}

// Energy at one point of one level, switching nowhere, faults everywhere.
Grid grid_with_meters() {
  auto grid = example_grid();
  for (auto& cell : grid.cells)
    for (auto& [name, level] : cell.levels) {
      if (level.state != State::measured) continue;
      level.meters[core::Metric::page_faults] = {2.5, ""};
      level.meters[core::Metric::energy] = {std::nullopt, "no counters"};
      level.meters[core::Metric::switched_out] = {std::nullopt, "hidden"};
    }
  grid.cells.front().levels.at("b").meters[core::Metric::energy] = {0.25, ""};
  return grid;
}

TEST(SweepMeters, are_a_column_where_any_level_has_one_and_a_reason_where_it_has_none) {
  const auto section = sweep_meters(grid_with_meters());
  ASSERT_EQ(section.items.size(), 1U);
  const auto& table = std::get<document::Table>(section.items[0]);
  std::vector<std::string> ids;
  for (const auto& column : table.columns) ids.push_back(column.id);
  EXPECT_THAT(ids, ElementsAre("point", "batch", "size", "mode", "level", "throughput", "page_faults", "energy"));
  ASSERT_EQ(table.rows.size(), 35U);  // 12 points of 3 levels, less the one that ran out of memory
  EXPECT_EQ(std::get<document::Absent>(table.rows[0][7]).reason, "no counters");
  EXPECT_DOUBLE_EQ(std::get<document::Number>(table.rows[1][7]).value, 0.25);
  EXPECT_DOUBLE_EQ(std::get<document::Number>(table.rows[1][6]).value, 2.5);
  EXPECT_THAT(table.note, HasSubstr("times switched out in an iteration (hidden)"));
  EXPECT_THAT(table.note, HasSubstr("steady memory (not in a process of its own at this point)"));
}

TEST(SweepMeters, are_maps_too_whose_empty_fields_say_why) {
  const auto grid = grid_with_meters();
  const auto surfaces = sweep_surfaces(grid, SweepLayout(grid));
  ASSERT_EQ(surfaces.items.size(), 16U);  // page faults and energy in two modes
  const auto& energy = std::get<document::Surface>(surfaces.items[14]);
  EXPECT_EQ(energy.choices[0].option + ", " + energy.choices[1].option, "energy of an iteration, infer");
  EXPECT_DOUBLE_EQ(energy.layers[1].fields[0][0].number.value, 0.25);
  EXPECT_EQ(energy.layers[1].fields[0][0].outcome, "faster than a, the fastest");
  EXPECT_FALSE(std::isfinite(energy.layers[0].fields[0][0].number.value));
  EXPECT_EQ(energy.layers[0].fields[0][0].outcome, "no counters");
}

TEST(SweepMeters, are_left_out_where_nothing_was_measured) {
  auto grid = example_grid();
  for (auto& cell : grid.cells)
    for (auto& [name, level] : cell.levels) level.state = State::failed;
  EXPECT_THAT(sweep_meters(grid).items, IsEmpty());
}

// For tests/report, which look at it in a browser: they name a folder, and plotly's script.
TEST(SweepReport, pages_for_the_browser_tests) {
  const char *folder = std::getenv("STRATA_EXAMPLE_PAGES"), *plotly = std::getenv("STRATA_PLOTLY_JS");
  if (!folder || !plotly) GTEST_SKIP() << "only as the child of another test";
  const GridAxis batch{"batch", {"1", "2", "4", "8", "16", "32"}}, size{"size", {"32", "64", "128"}};
  auto grid = analysis::made_grid(
      {batch, size, kMode}, {"eager", "onednn", "openvino", "static"},
      analysis::by_times(
          [](const Places& at, std::size_t level) {
            const double b = static_cast<double>(at[0]), s = static_cast<double>(at[1]);
            const double log_times[] = {0, -0.5 + 0.02 * b, -0.4 - 0.12 * b, -0.8 + 0.1 * b - 0.1 * s};
            return log_times[level] * (at[2] == 1 ? 0.5 : 1);
          },
          0.04));
  grid.reference = "eager";
  grid.cells.back().levels.at("onednn") = {.state = State::out_of_memory};
  fill_numbers(grid, 0.04);
  const SweepLayout layout(grid);
  document::Document page{.title = "strata sweep: resnet18", .summary = sweep_summary(grid)};
  document::Section fastest{.id = "fastest", .title = "Fastest level"};
  for (auto& map : sweep_winners(grid, layout)) fastest.items.push_back(std::move(map));
  fastest.items.push_back(standings_table(grid));
  fastest.items.push_back(document::Text{sweep_error_rates()});
  page.sections = {fastest,
                   {.id = "crossings", .title = "Crossings", .items = {crossings_table(grid)}},
                   sweep_lines(grid, layout),
                   sweep_surfaces(grid, layout),
                   sweep_time_and_memory(grid, layout)};
  const auto html = document::render_html(page, plotly);
  ASSERT_TRUE(html.has_value()) << html.error().what;
  std::ofstream(std::string(folder) + "/sweep.html") << *html;
}

}  // namespace
}  // namespace strata::report
