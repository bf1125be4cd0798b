// SPDX-License-Identifier: Apache-2.0
// Parts, outlines, bars, facts, details, logs and words of a document in every format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "report/render/cell_text.hpp"
#include "report/render/html_figure.hpp"
#include "report/render/render.hpp"
#include "unit/rendered.hpp"

namespace strata::document {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

Table outline() {
  return {.id = "steps",
          .title = "Steps",
          .columns = {{.id = "level", .title = "level", .align = Align::left},
                      {.id = "time", .title = "time", .has_bars = true},
                      {.id = "verdict", .title = "verdict", .align = Align::left}},
          .rows = {{"eager", Number{.value = 0.04, .format = NumberFormat::seconds}, Absent{}},
                   {"compile", Number{.value = 0.03, .format = NumberFormat::seconds, .mark = "*"},
                    Word{"faster", Tone::good}},
                   {"aoti", Number{.value = 0.01, .format = NumberFormat::seconds}, Word{"best", Tone::strong}},
                   {"static", Absent{"out of memory"}, Absent{"out of memory"}}},
          .depths = {0, 1, 2, 1}};
}

Bars memory() {
  return {.id = "memory",
          .title = "Memory",
          .rows = {"eager", "static"},
          .parts = {{"idle", {100e6, 50e6}}, {"network", {200e6, kNothing}}},
          .marks = {{"share", {150e6}}},
          .scale = {.title = "memory", .format = NumberFormat::bytes},
          .note = "Alone."};
}

Document in_parts() {
  Document document{.title = "strata: net", .subtitle = "run 1", .footnote = "MB are millions of bytes."};
  for (const char* name : {"batch 1", "batch 8"}) {
    Document part{.title = name, .summary = std::string("Move at ") + name + "."};
    part.id = std::string("c") + name[6];
    part.sections = {{.id = "result", .items = {outline()}},
                     {.id = "memory", .title = "Memory", .items = {memory()}},
                     {.id = "all", .title = "All numbers", .items = {Text{"of a page alone"}}, .is_detail = true}};
    document.parts.push_back(std::move(part));
  }
  return document;
}

TEST(DocumentOutline, hangs_rows_below_each_other_in_every_format) {
  const auto text = terminal_of(document_of(outline()));
  for (const char* row : {"  eager ", "├─ compile ", "│  └─ aoti ", "└─ static "}) EXPECT_THAT(text, HasSubstr(row));
  EXPECT_THAT(terminal_of(document_of(outline()), 80, false), HasSubstr("|  `- aoti "));
  EXPECT_THAT(render_markdown(document_of(outline())), HasSubstr("| \u00a0\u00a0\u00a0└ aoti | 10.0 ms | **best** |"));
  const auto page = page_of(document_of(outline()));
  EXPECT_THAT(page, HasSubstr(R"(<span class="below" style="--depth:2">aoti</span>)"));
  EXPECT_EQ(times(page, "class=\"below\""), 3u);
  EXPECT_THAT(render_csv(document_of(outline())), HasSubstr("\nsteps,aoti,0.01,,best,\n"));
}

TEST(DocumentOutline, that_does_not_fit_its_rows_is_an_ordinary_table) {
  auto table = outline();
  table.depths.pop_back();
  EXPECT_THAT(outline_of(table, report::glyphs(true)), testing::IsEmpty());
  table.depths = {3, 0, 7, -2};  // no row before it that it could hang below
  EXPECT_EQ(outline_of(table, report::glyphs(false)).size(), 4u);
}

TEST(DocumentCell, shows_words_by_colour_and_marks_behind_their_numbers) {
  const auto page = page_of(document_of(outline()));
  EXPECT_THAT(page, HasSubstr(R"(<span class="good">faster</span>)"));
  EXPECT_THAT(page, HasSubstr("30.0 ms *"));
  EXPECT_THAT(page, HasSubstr(R"(<i style="width:75.0%"></i>)"))
      << "a bar from zero, as long as its share of the largest";
  EXPECT_THAT(terminal_of(document_of(outline())), HasSubstr("30.0 ms *"));
  const auto rows = nlohmann::json::parse(render_json(document_of(outline())))["sections"][0]["items"][0]["rows"];
  EXPECT_EQ(rows[1]["verdict"], "faster");
  EXPECT_EQ(rows[1]["time"], nlohmann::json::parse(R"({"value": 0.03, "mark": "*"})"));
}

TEST(DocumentMarkdown, says_a_reason_of_cells_side_by_side_once) {
  EXPECT_THAT(render_markdown(document_of(outline())), HasSubstr("| └ static | – (out of memory) | – |"));
}

TEST(DocumentBars, are_a_table_where_there_are_no_pictures_and_data_where_there_are) {
  for (const auto& shown : {terminal_of(document_of(memory())), render_markdown(document_of(memory()))})
    for (const char* part : {"idle", "network", "share", "100 MB", "200 MB", "150 MB", "Alone."})
      EXPECT_THAT(shown, HasSubstr(part));
  EXPECT_EQ(render_csv(document_of(memory())),
            "table,row,part1,part2,part3\nmemory,eager,100000000,200000000,150000000\nmemory,static,50000000,,\n");
  const auto data = bars_data(memory());
  EXPECT_EQ(data["kind"], "bars");
  EXPECT_EQ(data["parts"][1]["values"], nlohmann::json::parse("[200000000.0, null]"));
  EXPECT_EQ(data["marks"][0]["values"], nlohmann::json::parse("[150000000.0, null]"));
  auto with_outline = memory();
  with_outline.table = outline();
  EXPECT_THAT(render_markdown(document_of(with_outline)), HasSubstr("aoti"));
  EXPECT_THAT(page_of(document_of(with_outline)), HasSubstr("Memory, as a table</span></caption>"));
}

TEST(DocumentFigure, has_its_own_table_in_place_of_its_points_and_says_what_is_shaded) {
  Figure figure{
      .id = "f",
      .title = "F",
      .panels =
          {{.lines = {{.name = "a", .x = {1, 2}, .y = {3, 0.1 + 0.2}, .labels = {"p", "q"}, .shows_labels = true}},
            .shaded = {{.from = 1, .to = 1.5}},
            .borders = {1.75}}},
      .table = outline()};
  EXPECT_THAT(terminal_of(document_of(figure)), HasSubstr("aoti"));
  EXPECT_THAT(render_markdown(document_of(figure)), Not(HasSubstr("drawn in the HTML report")));
  const auto data = figure_data(figure, Colours(document_of(figure)));
  const auto& panel = data["panels"][0];
  EXPECT_EQ(panel["shaded"], nlohmann::json::parse(R"([{"from": 1.0, "to": 1.5}])"));
  EXPECT_EQ(panel["borders"], nlohmann::json::parse("[1.75]"));
  EXPECT_EQ(panel["lines"][0]["shows_labels"], true);
  EXPECT_EQ(panel["lines"][0]["y"].dump(), "[3.0,0.3]") << "no digits that only a product leaves behind";
}

TEST(DocumentDetails, are_folded_on_a_page_and_left_out_elsewhere_but_for_data) {
  const auto document = document_of(Details{
      "compile: crashed", {Text{"the worker ended"}, Text{"line 1\n  line 2 <b>\n", Text::Kind::log}, outline()}});
  const auto page = page_of(document);
  EXPECT_THAT(page, HasSubstr("<details><summary>compile: crashed</summary><p>the worker ended</p>"));
  EXPECT_THAT(page, HasSubstr("line 1\n  line 2 &lt;b&gt;\n</pre>"));
  EXPECT_THAT(terminal_of(document), Not(HasSubstr("worker")));
  EXPECT_THAT(render_markdown(document), Not(HasSubstr("worker")));
  EXPECT_EQ(times(render_csv(document), "table,"), 1u);
  EXPECT_EQ(nlohmann::json::parse(render_json(document))["sections"][0]["items"][0]["items"].size(), 3u);
}

TEST(DocumentFacts, are_named_lines_and_a_command_stays_whole) {
  const std::string command = "./strata compare net --levels " + std::string(80, 'x');
  const auto document = document_of(Facts{
      "About", {{.name = "Trust", .value = "4 restarts"}, {.name = "Next", .value = command, .is_command = true}}});
  EXPECT_THAT(terminal_of(document), HasSubstr("\nTrust  4 restarts\nNext   " + command + "\n"));
  EXPECT_THAT(render_markdown(document), HasSubstr("- Trust: 4 restarts\n- Next: `" + command + "`\n"));
  EXPECT_THAT(page_of(document),
              HasSubstr("<dt>Next</dt><dd><pre tabindex=\"0\" aria-label=\"command\"><code>" + command));
}

TEST(DocumentParts, have_their_own_heading_answer_and_ids) {
  const auto page = page_of(in_parts());
  for (const char* id : {"d-c1", "d-c8", "d-c1-memory", "d-c8-memory", "d-c8-steps"})
    EXPECT_EQ(times(page, std::string(" id=\"") + id + "\""), 1u) << id;
  EXPECT_EQ(times(page, "<article "), 2u);
  EXPECT_THAT(page, HasSubstr(R"(<li><a class="part-link" href="#d-c8">batch 8</a><ul>)"));
  EXPECT_THAT(page, HasSubstr("<footer><p class=\"note\">MB are millions of bytes.</p></footer>"));
  const auto markdown = render_markdown(in_parts());
  EXPECT_THAT(markdown, HasSubstr("\n## batch 8\n\n**Move at batch 8.**\n"));
  EXPECT_THAT(markdown, HasSubstr("\n### Memory\n"));
  EXPECT_THAT(markdown, Not(HasSubstr("of a page alone")));
  const auto text = terminal_of(in_parts());
  EXPECT_THAT(text, HasSubstr("── batch 8 "));
  EXPECT_THAT(text, Not(HasSubstr("of a page alone")));
  const auto csv = render_csv(in_parts());
  EXPECT_EQ(times(csv, "table,"), 4u);
  for (const char* id : {"\nc1-steps,", "\nc1-memory,", "\nc8-steps,", "\nc8-memory,"}) EXPECT_THAT(csv, HasSubstr(id));
  EXPECT_EQ(nlohmann::json::parse(render_json(in_parts()))["parts"][1]["id"], "c8");
}

TEST(DocumentHtml, page_that_shares_its_script_is_small_and_asks_for_that_alone) {
  const auto page = render_html_beside(in_parts(), "plotly-1.min.js");
  EXPECT_EQ(times(page, "<script src=\"plotly-1.min.js\"></script>"), 1u);
  EXPECT_LT(page.size(), 100'000u);
  EXPECT_THAT(render_html_beside(document_of(Text{"only words"}), "plotly-1.min.js"), Not(HasSubstr("<script")));
}

}  // namespace
}  // namespace strata::document
