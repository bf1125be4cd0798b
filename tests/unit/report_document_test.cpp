// SPDX-License-Identifier: Apache-2.0
// Each renderer of a document, on an example with everything in it, and on what is odd, empty or hostile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <sstream>

#include "report/render/cell_text.hpp"
#include "report/render/html_figure.hpp"
#include "report/render/points.hpp"
#include "report/render/render.hpp"
#include "report/render/sparkline.hpp"
#include "unit/example_document.hpp"
#include "unit/rendered.hpp"

namespace strata::document {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const std::string kEvil = "</script><img src=x onerror=alert(1)>\"'&|`*[a](b)\x1b[31m\n=1+1,\xe2\x80\xae\xff";

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  for (const auto& line : lines_in(text)) most = std::max(most, report::width_of(line));
  return most;
}

// Everything that a renderer may be given, in all formats; none of them may throw or run into a sanitizer.
std::vector<std::string> all_formats(const Document& document) {
  return {terminal_of(document), terminal_of(document, 40, false),
          page_of(document),     render_markdown(document),
          render_csv(document),  render_json(document)};
}

// Every text of a document, to be changed.
template <class Change>
void change_texts(Document& document, const Change& change) {
  const auto axis = [&](Axis& one) {
    change(one.title), change(one.unit);
    std::for_each(one.categories.begin(), one.categories.end(), change);
  };
  for (auto* text : {&document.title, &document.subtitle, &document.summary}) change(*text);
  for (auto& fact : document.facts) change(fact.name), change(fact.value);
  for (auto& section : document.sections) {
    change(section.id), change(section.title);
    for (auto& item : section.items) {
      if (auto* text = std::get_if<Text>(&item)) change(text->paragraph);
      if (auto* table = std::get_if<Table>(&item)) {
        change(table->id), change(table->title), change(table->note);
        for (auto& column : table->columns) change(column.id), change(column.title), change(column.unit);
        for (auto& row : table->rows)
          for (auto& cell : row) {
            if (auto* text = std::get_if<std::string>(&cell)) change(*text);
            if (auto* absent = std::get_if<Absent>(&cell)) change(absent->reason);
          }
      }
      if (auto* figure = std::get_if<Figure>(&item)) {
        change(figure->id), change(figure->title), change(figure->note);
        for (auto& panel : figure->panels) {
          change(panel.title), axis(panel.x), axis(panel.y);
          for (auto& line : panel.lines) change(line.name), change(line.group);
        }
      }
      if (auto* surface = std::get_if<Surface>(&item)) {
        for (auto* text : {&surface->id, &surface->title, &surface->row_title, &surface->column_title, &surface->note})
          change(*text);
        std::for_each(surface->rows.begin(), surface->rows.end(), change);
        std::for_each(surface->columns.begin(), surface->columns.end(), change);
        axis(surface->scale);
        for (auto& choice : surface->choices) change(choice.title), change(choice.option);
        for (auto& layer : surface->layers) {
          change(layer.name);
          for (auto& row : layer.fields)
            for (auto& field : row)
              for (auto* text : {&field.outcome, &field.label})
                if (!text->empty()) change(*text);
        }
      }
      if (auto* map = std::get_if<HeatMap>(&item)) {
        for (auto* text : {&map->id, &map->title, &map->row_title, &map->column_title, &map->note}) change(*text);
        std::for_each(map->rows.begin(), map->rows.end(), change);
        std::for_each(map->columns.begin(), map->columns.end(), change);
        axis(map->scale);
      }
    }
  }
}

Document hostile_document() {
  auto document = example_document();
  change_texts(document, [](std::string& text) { text += kEvil; });
  return document;
}

TEST(Document, numbers_read_as_their_format_says) {
  EXPECT_EQ(number_text(0.012345, NumberFormat::digits), "0.01235");
  EXPECT_EQ(number_text(30, NumberFormat::digits), "30");
  EXPECT_EQ(number_text(1234.5, NumberFormat::digits), "1,234");
  EXPECT_EQ(number_text(1.25e-5, NumberFormat::digits), "1.250e-05");
  EXPECT_EQ(number_text(0, NumberFormat::digits), "0");
  EXPECT_EQ(number_text(-0.5, NumberFormat::digits), "-0.5000");
  EXPECT_EQ(number_text(0.9345, NumberFormat::percent), "93.45%");
  EXPECT_EQ(number_text(0.0369, NumberFormat::seconds), "36.9 ms");
  EXPECT_EQ(number_text(310e6, NumberFormat::bytes), "310 MB");
  EXPECT_EQ(number_text(1128, NumberFormat::count), "1,128");
  EXPECT_EQ(number_text(1.4242, NumberFormat::ratio), "1.42");
  EXPECT_EQ(number_text(kNan, NumberFormat::bytes), "");
}

TEST(Document, interval_has_as_many_digits_as_its_number_and_says_a_common_unit_once) {
  const auto& glyphs = report::glyphs(true);
  const auto shown = [&](double value, double low, double high, NumberFormat format) {
    return number_text(Number{.value = value, .format = format, .low = low, .high = high}, glyphs);
  };
  EXPECT_EQ(shown(1, 0.98, 1.02, NumberFormat::digits), "1.000 (0.980–1.020)");
  EXPECT_EQ(shown(0.041234, 0.0381, 0.0443, NumberFormat::digits), "0.0412 (0.0381–0.0443)");
  EXPECT_EQ(shown(2, 2, 2, NumberFormat::digits), "2 (2–2)");
  EXPECT_EQ(shown(0.0369, 0.0351, 0.038, NumberFormat::seconds), "36.9 ms (35.1–38.0)");
  EXPECT_EQ(shown(0.9345, 0.93, 0.94, NumberFormat::percent), "93.45% (93–94)");
  EXPECT_EQ(shown(0.9, 0.8, 1.2, NumberFormat::seconds), "900 ms (800 ms–1.20 s)");
  EXPECT_EQ(shown(0.1, -0.2, 0.4, NumberFormat::digits), "0.10 (-0.20 to 0.40)");
  EXPECT_EQ(shown(2, kNan, 3, NumberFormat::digits), "2");
}

TEST(Document, unit_is_left_out_where_numbers_bring_their_own) {
  EXPECT_EQ(shown_title(Axis{.title = "time", .unit = "s", .format = NumberFormat::seconds}), "time");
  EXPECT_EQ(shown_title(Axis{.title = "loss", .unit = "nats", .logarithmic = true}), "loss (nats, logarithmic)");
}

TEST(DocumentTerminal, stays_inside_the_width_but_for_commands) {
  for (const int width : {40, 60, 80, 140}) {
    auto document = example_document();
    document.sections.back().items.pop_back();  // the command
    EXPECT_LE(widest(terminal_of(document, width)), static_cast<std::size_t>(width)) << terminal_of(document, width);
  }
  EXPECT_THAT(terminal_of(example_document(), 60), HasSubstr("libtorch,onednn --seeds 10 --epochs 30\n"));
}

TEST(DocumentTerminal, says_the_summary_first_and_the_facts_last) {
  const auto lines = lines_in(terminal_of(example_document()));
  EXPECT_THAT(lines.front(), testing::StartsWith("compile@max-autotune reaches 90% test accuracy"));
  EXPECT_THAT(lines.back(), testing::MatchesRegex("run +2026-11-25-train-1"));
}

TEST(DocumentTerminal, table_that_is_too_wide_comes_in_parts_with_the_name_of_the_row_in_each) {
  const auto text = terminal_of(document_of(example_table()), 80);
  EXPECT_GE(times(text, "compile@max-"), 2u) << text;
  EXPECT_THAT(text, HasSubstr("93.45% (93.04–93.86)"));
  const auto wide = terminal_of(document_of(example_table()), 200);
  EXPECT_EQ(times(wide, "compile@max-autotune"), 1u) << wide;
}

TEST(DocumentTerminal, reasons_for_absent_cells_stand_below_the_table_once_a_row) {
  const auto text = terminal_of(document_of(example_table()), 80);
  EXPECT_EQ(times(text, "out of memory\n"), 1u) << text;
  EXPECT_THAT(text, HasSubstr("– libtorch: out of memory\n"));
  EXPECT_THAT(text, HasSubstr("– onednn, time to 90%: never reached\n"));
}

TEST(DocumentTerminal, figure_is_a_sparkline_with_first_and_last_value) {
  Panel panel{.x = {.title = "epoch"},
              .y = {.title = "loss"},
              .lines = {{.name = "eager", .x = {1, 2, 3, 4, 5, 6, 7, 8}, .y = {8, 7, 6, 5, 4, 3, 2, 1}}}};
  const auto document = document_of(Figure{.id = "f", .title = "Loss", .panels = {panel}});
  EXPECT_THAT(terminal_of(document), HasSubstr("  loss 1 to 8; epoch 1 to 8\n  eager  █▇▆▅▄▃▂▁  8 → 1\n"));
  EXPECT_THAT(terminal_of(document, 80, false), HasSubstr("  eager  #*+=~-._  8 to 1\n"));
}

TEST(DocumentTerminal, gap_in_a_line_is_a_space_and_a_long_way_between_points_is_joined) {
  Panel panel{
      .lines = {{.name = "a", .x = {0, 1, 2, 3}, .y = {0, kNan, 3, 3}}, {.name = "b", .x = {0, 3}, .y = {0, 3}}}};
  EXPECT_EQ(sparkline(panel.lines[0], panel, 4, false), "_ ##");
  EXPECT_EQ(sparkline(panel.lines[1], panel, 4, false), "_-+#");
}

TEST(DocumentTerminal, logarithmic_axis_takes_no_value_that_it_cannot_show) {
  const Line line{.name = "a", .x = {0, 1, 2, 3}, .y = {0, 1, 10, 100}};
  const Panel panel{.y = {.logarithmic = true}, .lines = {line}};
  EXPECT_EQ(sparkline(line, panel, 4, false), " _=#");
}

TEST(DocumentTerminal, is_plain_ascii_where_the_terminal_is) {
  const auto text = terminal_of(example_document(), 80, false);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

TEST(DocumentTerminal, colours_only_when_asked) {
  EXPECT_THAT(terminal_of(example_document()), Not(HasSubstr("\x1b")));
  EXPECT_THAT(render_terminal(example_document(), {.width = 80, .colour = true}), HasSubstr("\x1b[33mWarning"));
}

TEST(DocumentMarkdown, tables_keep_their_columns_and_figures_become_tables) {
  const auto text = render_markdown(example_document());
  EXPECT_THAT(text, HasSubstr("| level | accuracy | loss (nats) | time to 90% |"));
  EXPECT_THAT(text, HasSubstr("|---|---:|---:|---:|---:|---:|---:|---|"));
  EXPECT_THAT(text, HasSubstr("| onednn | 93.01% | – | – (never reached) | – | – | – | – |"));
  EXPECT_THAT(text, HasSubstr("| cross entropy (nats, logarithmic) | step 0 | 200 |"));
  EXPECT_THAT(text, HasSubstr("```sh\n./strata train resnet18"));
  EXPECT_THAT(text, HasSubstr("> **Warning:** The machine was busy"));
}

TEST(DocumentMarkdown, line_shows_its_last_value_up_to_a_place_and_nothing_after_its_end) {
  Panel panel{.lines = {{.name = "long", .x = {0, 1, 2, 3, 4}, .y = {9, 8, 7, 6, 5}},
                        {.name = "short", .x = {0, 1.5}, .y = {4, 3}}}};
  const auto table = places_table(panel, 3);  // 0, 2, 4
  const auto& glyphs = report::glyphs(true);
  std::vector<std::string> cells;
  for (const auto& cell : table.rows[1]) cells.push_back(cell_text(cell, glyphs));
  EXPECT_THAT(cells, ElementsAre("short", "4", "3", ""));
}

TEST(DocumentCsv, has_numbers_as_they_are_with_ends_and_reasons_in_columns_of_their_own) {
  Table table{.id = "t",
              .columns = {{.id = "level", .align = Align::left}, {.id = "loss"}, {.id = "note", .align = Align::left}},
              .rows = {{"eager", Number{.value = 1.0 / 3, .low = 0.25, .high = 0.5}, "a, \"b\""},
                       {"static", Absent{"crashed"}}}};
  EXPECT_EQ(render_csv(document_of(table)),
            "table,level,loss,loss_low,loss_high,loss_reason,note\n"
            "t,eager,0.3333333333333333,0.25,0.5,,\"a, \"\"b\"\"\"\n"
            "t,static,,,,crashed,\n");
}

TEST(DocumentCsv, names_the_table_in_each_row_of_the_whole) {
  const auto text = render_csv(example_document());
  EXPECT_THAT(text, testing::StartsWith("table,level,accuracy,accuracy_low,accuracy_high,accuracy_reason,loss,"));
  EXPECT_THAT(text, HasSubstr("\n\ntable,panel,line,x,y,low,high\ncurves,Loss,eager,0,"));
  EXPECT_THAT(text, HasSubstr("\n\ntable,row,column,value\nspeedups,1,96x96,0.7\nspeedups,1,128x128,0.8007"));
  EXPECT_EQ(times(text, "\ncurves,"), 4u * 80);
}

TEST(DocumentJson, has_every_number_unrounded_and_null_for_what_is_not_finite) {
  const auto json = nlohmann::json::parse(render_json(example_document()));
  EXPECT_EQ(json["schema"], "strata.document/1");
  const auto& rows = json["sections"][0]["items"][1]["rows"];
  EXPECT_EQ(rows[0]["accuracy"]["value"], 0.9345);
  EXPECT_EQ(rows[0]["accuracy"]["low"], 0.9345 - 0.0041);
  EXPECT_EQ(rows[2]["loss"]["reason"], "out of memory");
  EXPECT_TRUE(rows[3]["loss"]["value"].is_null());
  EXPECT_TRUE(rows[3]["verdict"].is_null());
  EXPECT_TRUE(json["sections"][2]["items"][0]["values"][5][5].is_null());
  EXPECT_EQ(json["sections"][1]["items"][0]["panels"][0]["lines"][0]["y"].size(), 60u);
}

TEST(DocumentHtml, shows_intervals_reasons_and_a_table_of_the_values_of_each_figure) {
  const auto page = page_of(example_document());
  EXPECT_THAT(page, HasSubstr(R"(<td class="n">93.45% <span class="interval">(93.04–93.86)</span></td>)"));
  EXPECT_THAT(page, HasSubstr(R"(<span class="none">out of memory</span>)"));
  EXPECT_EQ(times(page, "<summary>The same as a table</summary>"), 4u);
  EXPECT_EQ(times(page, R"(<div class="canvas")"), 4u);
  EXPECT_THAT(page, HasSubstr(R"(<p class="sentence">compile@max-autotune reaches)"));
}

TEST(DocumentHtml, needs_no_plotly_where_nothing_is_drawn_and_says_so_where_it_is_missing) {
  const auto text = render_html(document_of(Text{"only words"}), "/nowhere/plotly.min.js");
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, Not(HasSubstr("<script")));
  const auto figure = render_html(example_document(), "/nowhere/plotly.min.js");
  ASSERT_FALSE(figure.has_value());
  EXPECT_THAT(figure.error().what, HasSubstr("/nowhere/plotly.min.js"));
}

TEST(DocumentHtml, level_has_one_colour_in_all_figures) {
  const auto document = example_document();
  const Colours colours(document);
  const auto data = figure_data(example_curves(), colours);
  const auto& lines = data["panels"][0]["lines"];
  EXPECT_EQ(lines[2]["name"], "compile");
  EXPECT_EQ(lines[2]["colour"], 1);
  EXPECT_EQ(lines[3]["colour"], 1);
  EXPECT_EQ(data["panels"][1]["lines"][1]["colour"], 1);
}

TEST(DocumentHtml, long_line_is_thinned_without_losing_its_spike) {
  std::vector<Point> points;
  for (int i = 0; i < 100000; ++i) points.push_back({.x = 1.0 * i, .y = i == 54321 ? 7.0 : i == 99 ? kNan : 0.5});
  const auto drawn = thinned(points, 2000);
  EXPECT_LE(drawn.size(), 2000u);
  EXPECT_TRUE(std::any_of(drawn.begin(), drawn.end(), [](const Point& point) { return point.y == 7.0; }));
  EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end(), [](const Point& a, const Point& b) { return a.x < b.x; }));
}

TEST(DocumentHtml, ids_are_unique_and_plain_whatever_they_were) {
  auto document = document_of(Table{.id = "a b\"", .columns = {{.title = "x"}}});
  document.sections[0].items.push_back(Table{.id = "a b\"", .columns = {{.title = "x"}}});
  document.sections[0].items.push_back(Table{.id = "a-b--2", .columns = {{.title = "x"}}});
  const auto page = page_of(document);
  std::vector<std::string> ids;
  const std::regex id(R"re( id="([^"]*)")re");
  for (auto found = std::sregex_iterator(page.begin(), page.end(), id); found != std::sregex_iterator(); ++found)
    ids.push_back((*found)[1]);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
  for (const auto& one : ids) EXPECT_TRUE(std::regex_match(one, std::regex("[A-Za-z0-9_-]+"))) << one;
}

TEST(DocumentHostile, text_is_never_markup_in_html) {
  const auto page = page_of(hostile_document());
  EXPECT_EQ(times(page, "<img"), 0u);
  EXPECT_EQ(times(page, "</script>"), 3u);
  EXPECT_EQ(times(page, "\x1b"), 0u);
  EXPECT_EQ(times(page, "\xe2\x80\xae"), 0u);
  EXPECT_EQ(times(page, "\xff"), 0u);
  EXPECT_EQ(times(page, "&lt;img"), times(page, "&lt;/script&gt;&lt;img"));
}

TEST(DocumentHostile, text_steers_no_terminal_and_adds_no_line_to_it) {
  const auto text = terminal_of(hostile_document());
  for (const char* part : {"\x1b", "\xe2\x80\xae", "\xff", "\n=1+1"}) EXPECT_EQ(times(text, part), 0u) << part;
  EXPECT_LE(widest(terminal_of(document_of(hostile_document().sections[0].items[1]), 80)), 80u);
}

TEST(DocumentHostile, text_is_neither_markup_nor_a_new_column_in_markdown) {
  auto document = example_document();
  const auto columns = [](const std::string& text) {
    std::vector<std::size_t> bars;
    for (const auto& line : lines_in(text))
      if (line.starts_with("|")) bars.push_back(times(std::regex_replace(line, std::regex(R"(\\\|)"), ""), "|"));
    return bars;
  };
  const auto before = columns(render_markdown(document));
  const auto text = render_markdown(hostile_document());
  EXPECT_EQ(columns(text), before);
  EXPECT_EQ(lines_in(text).size(), lines_in(render_markdown(document)).size());
  for (const auto& line : lines_in(text)) {
    if (line.starts_with("./strata")) continue;  // inside a fence
    EXPECT_THAT(std::regex_replace(line, std::regex(R"(\\.)"), ""), Not(HasSubstr("<img"))) << line;
  }
  document.sections = {
      {.title = "S", .items = {Text{"# no heading"}, Text{"1. no list"}, Text{"    no code"}, Text{"- no list"}}}};
  const auto prose = render_markdown(document);
  for (const char* line : {"\n\\# no heading\n", "\n1\\. no list\n", "\nno code\n", "\n\\- no list\n"})
    EXPECT_THAT(prose, HasSubstr(line));
}

TEST(DocumentHostile, command_cannot_leave_its_fence_in_markdown) {
  const auto text = render_markdown(document_of(Text{"a\n```\n# b ````", Text::Kind::command}));
  EXPECT_THAT(text, HasSubstr("\n`````sh\na ``` # b ````\n`````\n"));
}

TEST(DocumentHostile, text_is_no_formula_in_csv) {
  Table table{.id = "=cmd()", .columns = {{.id = "=1+1"}}, .rows = {{"=2+2"}, {"+cmd|x"}, {"@SUM(1)"}}};
  EXPECT_EQ(render_csv(document_of(table)), "table,'=1+1\n'=cmd(),'=2+2\n'=cmd(),'+cmd|x\n'=cmd(),'@SUM(1)\n");
}

TEST(DocumentHostile, json_stays_json_and_steers_no_terminal) {
  const auto text = render_json(hostile_document());
  EXPECT_TRUE(nlohmann::json::accept(text));
  for (const char* part : {"\x1b", "\xe2\x80\xae"}) EXPECT_EQ(times(text, part), 0u);
}

TEST(DocumentOdd, empty_things_are_said_in_words) {
  EXPECT_THAT(terminal_of(document_of(Figure{.id = "f", .title = "F"})), HasSubstr("nothing to draw"));
  EXPECT_THAT(terminal_of(document_of(Figure{.id = "f", .panels = {{.title = "P", .lines = {{.name = "a"}}}}})),
              HasSubstr("P: nothing to draw: no line has a point"));
  EXPECT_THAT(terminal_of(document_of(Table{.id = "t", .columns = {{.title = "a"}}})), HasSubstr("no rows"));
  EXPECT_THAT(page_of(document_of(Table{.id = "t", .columns = {{.title = "a"}}})), HasSubstr("no rows"));
  EXPECT_THAT(render_markdown(document_of(Figure{.id = "f", .panels = {{.title = "P"}}})),
              HasSubstr("Nothing to draw"));
}

TEST(DocumentOdd, everything_renders_whatever_is_missing_too_long_or_not_finite) {
  const double infinite = std::numeric_limits<double>::infinity();
  Figure one_point{.id = "p", .panels = {{.lines = {{.name = "a", .x = {5}, .y = {3}, .low = {2}, .high = {4}}}}}};
  Figure uneven{
      .id = "u",
      .panels = {{.x = {.logarithmic = true},
                  .y = {.logarithmic = true},
                  .lines = {{.name = "", .x = {0, -1, kNan, infinite, 2}, .y = {1, kNan, 0, -1}, .low = {1}}}}}};
  Figure many{.id = "m", .panels = {{.title = std::string(500, 'w')}}};
  for (int i = 0; i < 40; ++i)
    many.panels[0].lines.push_back(
        {.name = std::string(200, 'n') + std::to_string(i), .x = {0, 1}, .y = {1.0 * i, kNan}});
  Figure places{
      .id = "c",
      .panels = {{.x = {.categories = {"a", "b"}}, .lines = {{.name = "l", .x = {0, 1, 2, 0.5}, .y = {1, 2, 3, 4}}}}}};
  HeatMap ragged{.id = "h", .rows = {"r", "s"}, .columns = {"c", "d"}, .values = {{1}}};
  HeatMap empty{.id = "e"};
  Surface short_layers{.id = "s", .rows = {"r", "q"}, .columns = {"c"}, .layers = {{.name = "l", .fields = {{}}}, {}}};
  Surface no_plane{.id = "n", .layers = {{.name = "l"}}};
  Table odd{.id = "o",
            .columns = {{.title = std::string(300, 'x')}, {.title = "y"}},
            .rows = {{},
                     {std::string(300, 'z'), Number{.value = infinite}, "more than columns"},
                     {Absent{std::string(300, 'q')}}}};
  for (const Item& item : std::vector<Item>{one_point, uneven, many, places, ragged, empty, short_layers, no_plane, odd,
                                            Table{}, Figure{}, Surface{}, Text{}}) {
    const auto document = document_of(item);
    for (const auto& text : all_formats(document)) EXPECT_FALSE(text.empty() && !std::holds_alternative<Text>(item));
    EXPECT_LE(widest(terminal_of(document, 80)), 80u) << terminal_of(document, 80);
  }
  EXPECT_NO_THROW((void)all_formats(Document{}));
}

TEST(Document, format_that_nobody_knows_is_refused_with_those_there_are) {
  const auto refused = render(Document{}, "pdf", "", {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().what, HasSubstr("pdf"));
  EXPECT_THAT(refused.error().hint, HasSubstr("html"));
  EXPECT_EQ(render(example_document(), "csv", "", {}).value(), render_csv(example_document()));
}

// For tests/report, which look at these pages in a browser: they name a folder, and plotly's script.
TEST(Document, pages_for_the_browser_tests) {
  const char *folder = std::getenv("STRATA_EXAMPLE_PAGES"), *plotly = std::getenv("STRATA_PLOTLY_JS");
  if (!folder || !plotly) GTEST_SKIP() << "only as the child of another test";
  auto crowded = example_document();
  auto& panels = std::get<Figure>(crowded.sections[1].items[0]).panels;
  for (int i = 0; i < 36; ++i)
    panels[0].lines.push_back(
        example_line("level-with-a-long-name-" + std::to_string(i) + "@its-variant", "", 3, 0.2 + 0.05 * i, 30));
  panels[1].lines = {{.name = "one point", .x = {3}, .y = {0.5}, .low = {0.4}, .high = {0.6}}};
  panels.push_back({.title = "No line", .lines = {{.name = "none"}}});
  panels.push_back({.title = "Epochs",
                    .x = {.title = "epoch"},
                    .y = {.title = "waited", .unit = "s", .format = NumberFormat::seconds},
                    .lines = {{.name = "few", .x = {1, 2, 3}, .y = {0.5, 0.25, 0.125}}}});
  panels.push_back({.title = "Places",
                    .x = {.categories = {"first", "second", "third"}},
                    .lines = {{.name = "marks",
                               .x = {0, 1, 2},
                               .y = {1, 3, 2},
                               .low = {0.5, 2, 1.5},
                               .high = {1.5, 4, 2.5},
                               .marks_only = true}}});
  for (const auto& [name, document] :
       {std::pair{"example", example_document()}, {"hostile", hostile_document()}, {"crowded", crowded}}) {
    const auto page = render_html(document, plotly);
    ASSERT_TRUE(page.has_value()) << page.error().what;
    std::ofstream(fs::path(folder) / (std::string(name) + ".html")) << *page;
  }
}

}  // namespace
}  // namespace strata::document
